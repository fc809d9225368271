package hosttest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/exchange"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// probe is the path of the guest that does what its configuration says.
var probe string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hosttest-")
	if err != nil {
		panic(err)
	}
	probe = filepath.Join(dir, "probe.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", probe, "../testdata/guests/probe")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		panic(string(text))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// What a step in one direction sets free in the other is collected with it.
func TestExchangeCollectsBothDirections(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: "request_body return 1\nresponse_headers continue 0"})
	x := exchange.New(h.Worker(0).NewStream())
	x.Headers(exchange.Request, hostsim.Headers{{":method", "POST"}, {":path", "/"}, {":authority", "a"}}, false)
	x.Body(exchange.Request, []byte("held"), true)
	if m := x.Messages[exchange.Request]; !m.Paused || len(m.Body) > 0 {
		t.Fatalf("%+v", m)
	}
	x.Headers(exchange.Response, hostsim.Headers{{":status", "200"}}, true)
	if m := x.Messages[exchange.Request]; m.Paused || string(m.Body) != "held" || !m.Complete {
		t.Errorf("%+v", m)
	}
	x.End(hostsim.EndNormal)
}

func TestDo(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Workers: 2, Config: `
		configure mdef 0 requests
		request_headers prop request$path
		request_headers prop xds$cluster_name
		request_headers replace 0 x-dest 10.0.0.1:8000
		request_headers minc requests 1
		request_headers sdset key value 0
		request_body bufset 0 4 0 !
		response_headers prop upstream$address
		response_headers replace 2 x-via probe`})
	got := h.Do(1, hosttest.Request{Path: "/v1", Cluster: "vllm", Upstream: "10.0.0.1:8000", Body: "body",
		Headers:  hostsim.Headers{{"X-Session-ID", "a"}},
		Response: hosttest.Response{Status: 201, Chunks: []string{"one", "two"}}})
	if got.Request.Value(":method") != "POST" || got.Request.Value("x-session-id") != "a" || got.Request.Value("x-dest") != "10.0.0.1:8000" {
		t.Errorf("request %v", got.Request)
	}
	if got.RequestBody != "body!" || got.Status != 201 || got.Response.Value("x-via") != "probe" || got.ResponseBody != "onetwo" {
		t.Errorf("result %+v", got)
	}
	if got.Local != nil || got.Hangs || got.Reset || got.Err != nil {
		t.Errorf("result %+v", got)
	}
	if h.Metric("requests") != 1 || h.Metric("undefined") != 0 {
		t.Errorf("requests %d", h.Metric("requests"))
	}
	if v, _, _ := h.SharedData().Get("key"); string(v) != "value" {
		t.Errorf("shared %q", v)
	}
	heard := strings.Join(h.Messages(hostsim.LogInfo), "\n")
	for _, want := range []string{"prop request$path = 0 /v1", "prop xds$cluster_name = 0 vllm", "prop upstream$address = 0 10.0.0.1:8000"} {
		if !strings.Contains(heard, strings.ReplaceAll(want, "$", "\x00")) && !strings.Contains(heard, want) {
			t.Errorf("no %q in\n%s", want, heard)
		}
	}
	if n := h.Worker(1).OpenStreams(); n != 0 {
		t.Errorf("%d streams left open", n)
	}
}

func TestDoLocalReply(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: "request_headers reply 418 short"})
	got := h.Do(0, hosttest.Request{})
	if got.Local == nil || got.Status != 418 || got.ResponseBody != "short" || got.Request != nil || got.Response.Value("content-length") != "5" {
		t.Errorf("result %+v", got)
	}
}

func TestDoHangsAndResets(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: "request_headers return 1"})
	if got := h.Do(0, hosttest.Request{Body: "x"}); !got.Hangs || got.Request != nil || got.Status != 0 {
		t.Errorf("paused: %+v", got)
	}
	h = hosttest.New(t, hosttest.Options{Wasm: probe, Config: "request_headers close 0"})
	if got := h.Do(0, hosttest.Request{}); !got.Reset || got.Hangs || got.Status != 0 {
		t.Errorf("closed: %+v", got)
	}
}

// A test sees what its plugin does with time without waiting for it.
func TestAdvance(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: "configure tickevery 1000\ntick log 3 ticked"})
	h.Advance(3 * time.Second)
	if got := h.Messages(hostsim.LogWarn); len(got) != 6 { // three in the main thread, three in the worker
		t.Errorf("%d ticks", len(got))
	}
}

func TestStartReturnsTheRefusal(t *testing.T) {
	if _, err := hosttest.Start(t, hosttest.Options{Wasm: probe, Config: "configure return 0"}); !errors.Is(err, hostsim.ErrRefused) {
		t.Errorf("err %v", err)
	}
}

func TestProfileAndAdjust(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: "request_headers sleep 1", Profile: "envoy-1.36", AllowTraps: true,
		Adjust: func(c *hostsim.Config) { c.FailurePolicy = hostsim.FailOpen }})
	if got := h.Do(0, hosttest.Request{}); !errors.Is(got.Err, hostsim.ErrTrap) || got.Status != 503 {
		t.Errorf("first: %+v", got)
	}
	if got := h.Do(0, hosttest.Request{}); got.Err != nil || got.Status != 200 {
		t.Errorf("second: %+v", got)
	}
}

// fakeT stands for a test that is expected to fail.
type fakeT struct {
	testing.TB
	failures []string
}

func (f *fakeT) Helper()        {}
func (f *fakeT) Cleanup(func()) {}
func (f *fakeT) Errorf(format string, args ...any) {
	f.failures = append(f.failures, format)
}
func (f *fakeT) Fatalf(format string, args ...any) {
	for _, a := range args {
		f.failures = append(f.failures, a.(string))
	}
	runtime.Goexit()
}

// A module that is not there fails the test and says what makes it; it never skips.
func TestMissingModuleFails(t *testing.T) {
	f := &fakeT{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		hosttest.New(f, hosttest.Options{Wasm: "no/such.wasm", Build: "make wasm"})
	}()
	<-done
	if got := strings.Join(f.failures, " "); got != "no/such.wasm make wasm" {
		t.Errorf("failed with %q", got)
	}
}

// A crash of the plugin fails the test that did not ask for it.
func TestCrashFailsTheTest(t *testing.T) {
	f := &fakeT{TB: t}
	h := hosttest.New(f, hosttest.Options{Wasm: probe, Config: "request_headers panic boom"})
	defer h.Close()
	if got := h.Do(0, hosttest.Request{}); got.Err == nil || len(f.failures) != 1 {
		t.Errorf("err %v, failures %v", got.Err, f.failures)
	}
}
