package hostsim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"
)

const crashing = "request_headers when 1 panic boom\nresponse_headers log 2 seen"

// What the real Envoy does with a worker that crashed, per policy.
func TestFailurePolicies(t *testing.T) {
	for _, tt := range []struct {
		policy FailurePolicy
		later  int // status of later requests, 0 for passed on
		plugin bool
	}{
		{FailClosed, 503, false},
		{FailOpen, 0, false},
		{FailReload, 0, true},
	} {
		p := newProbe(t, crashing, func(c *Config) { c.FailurePolicy, c.Workers = tt.policy, 2 })
		s := p.Worker(0).NewStream()
		step, err := s.RequestHeaders(get, true)
		if !errors.Is(err, ErrTrap) || step.Flow != Reply || s.LocalReply().Status != 503 || len(s.LocalReply().Body) != 0 {
			t.Errorf("policy %d: %+v, %v, reply %+v", tt.policy, step, err, s.LocalReply())
		}
		ok(t, s.End(EndNormal)) // a dead machine hears nothing of it
		if err := p.Worker(0).Err(); !errors.Is(err, ErrTrap) {
			t.Errorf("worker's error %v", err)
		}
		p.heard()

		p.Advance(2 * time.Second)
		s = p.Worker(0).NewStream()
		step, err = s.RequestHeaders(get, true)
		if tt.plugin {
			// The new machine counts its calls from 1 again, and so crashes again.
			if !errors.Is(err, ErrTrap) || step.Flow != Reply {
				t.Errorf("reloaded: %+v, %v", step, err)
			}
		} else if got := step.Flow == Reply; err != nil || got != (tt.later != 0) {
			t.Errorf("policy %d, later request: %+v, %v", tt.policy, step, err)
		}
		ok(t, s.End(EndNormal))

		other := p.Worker(1).NewStream()
		if _, err := other.RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
			t.Errorf("the other worker has its own machine and its own crash: %v", err)
		}
	}
}

// A reload waits for the backoff and for a request; shared data is still there, and ticks come back.
func TestReload(t *testing.T) {
	p := newProbe(t, `
		configure tickevery 100
		configure sdget key
		configure random
		request_headers when 2 panic boom
		request_headers sdset key v 0`, func(c *Config) {
		c.FailurePolicy, c.ReloadBackoff = FailReload, 100*time.Millisecond
	})
	p.pass()
	s := p.Worker(0).NewStream()
	if _, err := s.RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
		t.Fatalf("err %v", err)
	}
	p.heard()
	p.Advance(99 * time.Millisecond)
	s = p.Worker(0).NewStream()
	if step, err := s.RequestHeaders(get, true); err != nil || step.Flow != Reply || s.LocalReply().Status != 503 {
		t.Errorf("before the backoff: %+v, %v", step, err)
	}
	p.Advance(time.Second)
	p.expect("") // neither ticks nor a reload without a request
	p.pass()
	var drawn []string
	for _, e := range p.Logs() {
		if e.Worker == 0 && strings.HasPrefix(e.Message, "random") {
			drawn = append(drawn, e.Message)
		}
	}
	if len(drawn) != 2 || drawn[0] == drawn[1] {
		t.Errorf("the two machines drew %v", drawn)
	}
	if got := p.heard(); !strings.Contains(got, "sdget key = 0 v") || !strings.Contains(got, "> request_headers 2 3 1") {
		t.Errorf("heard\n%s", got)
	}
	if p.Worker(0).Err() != nil {
		t.Errorf("err %v", p.Worker(0).Err())
	}
	p.Advance(100 * time.Millisecond)
	p.expect("> tick 1")
	if got := p.Counters().Callbacks["proxy_on_request_headers"]; got != 3 {
		t.Errorf("%d calls counted over both machines", got)
	}
}

// Streams in flight on a worker that crashes are answered 503 while nothing has been sent, and cut afterwards.
func TestStreamsInFlightWhenAWorkerCrashes(t *testing.T) {
	p := newProbe(t, "request_headers when 3 panic boom", func(c *Config) { c.FailurePolicy = FailOpen })
	waiting, streaming, crash := p.Worker(0).NewStream(), p.Worker(0).NewStream(), p.Worker(0).NewStream()
	for _, s := range []*Stream{waiting, streaming} {
		_, err := s.RequestHeaders(get, true)
		ok(t, err)
	}
	_, err := streaming.ResponseHeaders(reply, false)
	ok(t, err)
	if _, err := crash.RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
		t.Fatalf("err %v", err)
	}
	if step, err := waiting.ResponseHeaders(reply, true); err != nil || step.Flow != Reply || waiting.LocalReply().Status != 503 {
		t.Errorf("waiting: %+v, %v", step, err)
	}
	if step, err := streaming.ResponseBody([]byte("x"), false); err != nil || step.Flow != Reset {
		t.Errorf("streaming: %+v, %v", step, err)
	}
}

// A crash in a tick kills that machine alone, and the main thread's never returns.
func TestCrashInATick(t *testing.T) {
	p := newProbe(t, "configure tickevery 100\ntick when 2 panic boom", func(c *Config) {
		c.FailurePolicy, c.ReloadBackoff = FailReload, 100*time.Millisecond
	})
	p.Advance(time.Second)
	if p.Main().Err() == nil || p.Worker(0).Err() == nil {
		t.Error("a machine lives")
	}
	if got := p.Counters().Callbacks["proxy_on_tick"]; got != 4 {
		t.Errorf("%d ticks, want 2 in each of two machines", got)
	}
	p.pass()
	p.Advance(100 * time.Millisecond)
	if p.Main().Err() == nil || p.Worker(0).Err() != nil {
		t.Errorf("main %v, worker %v", p.Main().Err(), p.Worker(0).Err())
	}
}

// The text of a panic reaches the log as Go prints it.
func TestPanicTextIsLogged(t *testing.T) {
	p := newProbe(t, crashing)
	s := p.Worker(0).NewStream()
	_, _ = s.RequestHeaders(get, true)
	if got := p.heard(); !strings.Contains(got, "boom") || !strings.Contains(got, "proxy_on_request_headers on worker 0") {
		t.Errorf("heard\n%s", got)
	}
}

// Memory that is not the module's is refused, not read.
func TestAddressesOutsideMemory(t *testing.T) {
	p := newProbe(t, "request_headers badptr")
	p.pass()
	p.results("badptr = 6")
}

// A function that no gateway has says so, under a profile that links it, and is counted.
func TestUnimplementedIsCounted(t *testing.T) {
	m := minimal()
	m.imports = []wasmImport{{module: "env", name: "proxy_dream", params: []api.ValueType{i32}, results: []api.ValueType{i32}}}
	// if the answer is not 12, trap
	body := []byte{0x41, 0, 0x10, 0, 0x41, 12, 0x47, 0x04, 0x40, 0x00, 0x0b}
	m.funcs = append(m.funcs, wasmFunc{name: "proxy_on_log", params: []api.ValueType{i32}, body: body})
	h, err := New(context.Background(), Config{Wasm: m.bytes(), Profile: Permissive()})
	ok(t, err)
	defer h.Close()
	ok(t, h.Worker(0).NewStream().End(EndNormal))
	ok(t, h.Worker(0).NewStream().End(EndNormal))
	if got := h.Counters().Unimplemented; len(got) != 1 || got["env.proxy_dream"] != 2 {
		t.Errorf("unimplemented %v", got)
	}
}

// A module that exits is as dead as one that crashes.
func TestProcExit(t *testing.T) {
	m := minimal()
	m.imports = []wasmImport{{module: "wasi_snapshot_preview1", name: "proc_exit", params: []api.ValueType{i32}}}
	m.funcs = append(m.funcs, wasmFunc{name: "proxy_on_log", params: []api.ValueType{i32}, body: []byte{0x41, 0, 0x10, 0}})
	h, err := New(context.Background(), Config{Wasm: m.bytes()})
	ok(t, err)
	defer h.Close()
	if err := h.Worker(0).NewStream().End(EndNormal); !errors.Is(err, errExit) || !errors.Is(err, ErrTrap) {
		t.Errorf("err %v", err)
	}
}
