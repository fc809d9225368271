package hostsim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// guests builds the modules under testdata/guests, each once a run.
var guests struct {
	sync.Mutex
	dir   string
	built map[string][]byte
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hostsim-guests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	guests.dir, guests.built = dir, map[string][]byte{}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func guest(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := buildGuest(name)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// buildGuest is guest for examples, which have no testing.TB.
func buildGuest(name string) ([]byte, error) {
	guests.Lock()
	defer guests.Unlock()
	if wasm := guests.built[name]; wasm != nil {
		return wasm, nil
	}
	out := filepath.Join(guests.dir, name+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/guests/"+name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build guest %s: %w\n%s", name, err, text)
	}
	wasm, err := os.ReadFile(out)
	if err == nil {
		guests.built[name] = wasm
	}
	return wasm, err
}

// probe is a host that runs testdata/guests/probe with a script as its plugin configuration.
type probe struct {
	*Host
	t    testing.TB
	seen int
}

// newProbe starts a probe that is recorded, and whose recording is replayed at the end of the test.
func newProbe(t testing.TB, script string, adjust ...func(*Config)) *probe {
	t.Helper()
	var recording bytes.Buffer
	var p *probe
	t.Cleanup(func() {
		if recording.Len() > 0 && !t.Failed() {
			replayed(t, p.config.Wasm, &recording)
		}
	})
	record := func(c *Config) {
		if _, test := t.(*testing.T); test {
			c.Recorder = NewRecorder(&recording, RecordOptions{})
		}
	}
	p = newFree(t, script, append([]func(*Config){record}, adjust...)...)
	return p
}

// newFree starts a probe that nothing records: only such a one is set back, or gets other code.
func newFree(t testing.TB, script string, adjust ...func(*Config)) *probe {
	t.Helper()
	c := Config{Wasm: guest(t, "probe"), PluginConfig: []byte(script)}
	for _, f := range adjust {
		f(&c)
	}
	h, err := New(context.Background(), c)
	ok(t, err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &probe{Host: h, t: t}
	p.heard()
	return p
}

// replayed checks that a test's host has been recorded so that it replays, whatever the test did.
func replayed(t testing.TB, wasm []byte, recording io.Reader) {
	t.Helper()
	if report, err := Check(context.Background(), wasm, recording); err != nil {
		t.Errorf("the recording of this test does not replay: %v", err)
	} else if !report.SameModule || report.VMs == 0 {
		t.Errorf("the recording of this test: %+v", report)
	}
}

// heard returns what the workers have logged since it was last called, one line an entry, without the main thread.
func (p *probe) heard() string {
	var out []string
	logs := p.Logs()
	for _, e := range logs[p.seen:] {
		if e.Worker >= 0 {
			out = append(out, e.Message)
		}
	}
	p.seen = len(logs)
	return strings.Join(out, "\n")
}

// expect compares what has been heard with want, whose indentation does not count.
func (p *probe) expect(want string) {
	p.t.Helper()
	diff(p.t, p.heard(), want)
}

// results is like expect for operations alone, without the callbacks around them.
func (p *probe) results(want string) {
	p.t.Helper()
	var ops []string
	for line := range strings.SplitSeq(p.heard(), "\n") {
		if !strings.HasPrefix(line, "> ") {
			ops = append(ops, line)
		}
	}
	diff(p.t, strings.Join(ops, "\n"), want)
}

func diff(t testing.TB, got, want string) {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	want = strings.Join(lines, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// get and reply are the smallest messages.
var (
	get   = Headers{{":method", "GET"}, {":path", "/a?b=c"}, {":authority", "example.com"}}
	reply = Headers{{":status", "200"}}
)

// pass runs a whole request without bodies on worker 0.
func (p *probe) pass() *Stream {
	p.t.Helper()
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(p.t, err)
	_, err = s.ResponseHeaders(reply, true)
	ok(p.t, err)
	ok(p.t, s.End(EndNormal))
	return s
}
