package etcd

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// A plugin reaches the server by proxy_http_call, hears of it when it should, and finds out nothing more from what goes wrong
// than in Envoy.
func TestPluginsCalls(t *testing.T) {
	probe := filepath.Join(t.TempDir(), "probe.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", probe, "../testdata/guests/probe")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	s, clock := New(), hostsim.NewVirtualClock()
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: `
		request_headers httpcall etcd 50 {"key":"YQ=="} :method=POST :path=/v3/kv/put :authority=etcd
		http_call_response get 6 :status
		http_call_response get 6 content-type
		http_call_response buf 4 0 500`,
		Adjust: func(c *hostsim.Config) { c.Clock, c.HTTPCall = clock, s.HTTPCalls(clock) }})
	const beforeHeaders = "upstream connect error or disconnect/reset before headers. reset reason: "
	for _, c := range []struct {
		faults               Faults
		after                time.Duration
		status, kind, answer string
	}{
		{Faults{Latency: 3 * time.Millisecond}, 3 * time.Millisecond, "200", "application/json", `{"header":{"cluster_id":"14841639068965178418",`},
		{Faults{Outage: Refused}, 0, "503", "text/plain", beforeHeaders + "remote connection failure"},
		{Faults{Outage: AnswerCut}, 0, "503", "text/plain", beforeHeaders + "connection termination"},
		{Faults{Outage: AnswerHung}, 50 * time.Millisecond, "504", "text/plain", "upstream request timeout"},
	} {
		s.SetFaults(c.faults)
		h.Do(0, hosttest.Request{})
		heard := len(h.Messages(hostsim.LogInfo))
		if c.after > 0 {
			if h.Advance(c.after - 1); len(h.Messages(hostsim.LogInfo)) != heard {
				t.Errorf("%+v: heard too early", c.faults)
			}
		}
		h.Advance(min(c.after, 1))
		for _, want := range []string{"get 6 :status = 0 " + c.status, "get 6 content-type = 0 " + c.kind, "buf 4 0 500 = 0 " + c.answer} {
			if !h.Logged(want) {
				t.Errorf("%+v: no %q in the log", c.faults, want)
			}
		}
	}
	if s.Revision() != 4 {
		t.Errorf("revision %d after three calls that were applied", s.Revision())
	}
	if s.Now() < time.Second+3*time.Millisecond {
		t.Errorf("the server's clock stands at %v", s.Now())
	}
}
