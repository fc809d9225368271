package hostsim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// Which calls are hit, out of eight.
func TestFaultHitsTheCallsItNames(t *testing.T) {
	for _, tt := range []struct {
		fault Fault
		want  string
	}{
		{Fault{}, "XXXXXXXX"},
		{Fault{Nth: 3}, "..X....."},
		{Fault{Nth: 3, Times: 2}, "..XX...."},
		{Fault{Times: 2}, "XX......"},
		{Fault{Every: 3}, "..X..X.."},
		{Fault{Nth: 2, Every: 3}, ".X..X..X"},
		{Fault{Nth: 2, Every: 3, Times: 2}, ".X..X..."},
		{Fault{Nth: 2, Every: 1}, ".XXXXXXX"},
		{Fault{Worker: "1"}, "........"},
	} {
		p := newProbe(t, "request_headers sdset key v 0")
		tt.fault.At, tt.fault.Answer = "env.proxy_set_shared_data", "INTERNAL_FAILURE"
		ok(t, p.InjectFaults([]Fault{tt.fault}))
		var got strings.Builder
		for range 8 {
			p.pass()
			mark := "."
			if strings.Contains(p.heard(), "sdset key v 0 = 10") {
				mark = "X"
			}
			got.WriteString(mark)
		}
		if got.String() != tt.want {
			t.Errorf("%+v: hit %s, want %s", tt.fault, got.String(), tt.want)
		}
		if n := strings.Count(tt.want, "X"); !slices.Equal(p.FaultsFired(), []int{n}) {
			t.Errorf("%+v: counted %v, want %d", tt.fault, p.FaultsFired(), n)
		}
		ok(t, p.InjectFaults(nil))
		p.pass()
		p.results("sdset key v 0 = 0")
		if p.FaultsFired() != nil {
			t.Errorf("counted %v without faults", p.FaultsFired())
		}
	}
}

// A fault answers in place of the call, which then does nothing, and only on the worker it names.
func TestFaultAnswersOnOneWorker(t *testing.T) {
	p := newProbe(t, "request_headers sdset key v 0", func(c *Config) { c.Workers = 2 })
	ok(t, p.InjectFaults([]Fault{{At: "env.proxy_set_shared_data", Worker: "1", Answer: "OK"}}))
	s := p.Worker(1).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	if _, _, found := p.SharedData().Get("key"); found {
		t.Error("the call was made")
	}
	p.pass()
	if _, _, found := p.SharedData().Get("key"); !found {
		t.Error("the other worker's call was not made")
	}
}

func TestFaultTraps(t *testing.T) {
	for _, at := range []string{"env.proxy_set_shared_data", "proxy_on_request_headers", "proxy_on_memory_allocate"} {
		p := newProbe(t, "request_headers sdget key\nrequest_headers sdset key v 0")
		p.SharedData().Set("key", []byte("old"), 0)
		ok(t, p.InjectFaults([]Fault{{At: at, Trap: true}}))
		s := p.Worker(0).NewStream()
		step, err := s.RequestHeaders(get, true)
		if !errors.Is(err, ErrTrap) || !errors.Is(err, errInjected) || !strings.Contains(err.Error(), at) || step.Flow != Reply {
			t.Errorf("%s: %+v, %v", at, step, err)
		}
		if value, _, _ := p.SharedData().Get("key"); string(value) != "old" {
			t.Errorf("%s: wrote %q", at, value)
		}
	}
}

// Time passes inside of a call: the module sees it, and what falls due waits for Advance.
func TestFaultDelays(t *testing.T) {
	p := newProbe(t, "configure tickevery 1000\nrequest_headers hostnow\nrequest_headers sdset key v 0\nrequest_headers hostnow")
	ok(t, p.InjectFaults([]Fault{
		{At: "env.proxy_set_shared_data", Delay: "2s"},
		{At: "env.proxy_set_shared_data", Delay: "500ms", Answer: "EMPTY"},
		{At: "env.proxy_set_shared_data", Answer: "OK"}, // too late: the second answers
	}))
	p.pass()
	p.results(`
		hostnow = 0 2026-01-01T00:00:00Z
		sdset key v 0 = 7
		hostnow = 0 2026-01-01T00:00:02.5Z`)
	if got := p.FaultsFired(); !slices.Equal(got, []int{1, 1, 1}) {
		t.Errorf("counted %v", got)
	}
	p.Advance(0)
	p.expect("> tick 1")
}

// An allocator without memory answers null, and the call around it cannot hand over what it has.
func TestFaultOutOfMemoryInTheAllocator(t *testing.T) {
	p := newProbe(t, "request_headers sdget key")
	p.SharedData().Set("key", []byte("value"), 0)
	ok(t, p.InjectFaults([]Fault{{At: "proxy_on_memory_allocate", Nth: 1, OutOfMemory: true}}))
	p.pass()
	p.results("sdget key = 6")
	p.pass()
	p.results("sdget key = 0 value")
}

// Memory that cannot grow ends a Go module as soon as it needs more, and only in that virtual machine.
func TestFaultOutOfMemory(t *testing.T) {
	p := newProbe(t, "request_headers garbage 1 50000000", func(c *Config) { c.Workers = 2 })
	ok(t, p.InjectFaults([]Fault{{At: "proxy_on_request_headers", Worker: "0", OutOfMemory: true}}))
	if _, err := p.Worker(0).NewStream().RequestHeaders(get, true); !errors.Is(err, ErrTrap) || !errors.Is(err, ErrMemory) {
		t.Errorf("err %v", err)
	}
	if _, err := p.Worker(1).NewStream().RequestHeaders(get, true); err != nil {
		t.Errorf("the other worker: %v", err)
	}
	p = newProbe(t, "request_headers garbage 1 50000000")
	ok(t, p.InjectFaults([]Fault{{At: "proxy_on_context_create", OutOfMemory: true}}))
	s := p.Worker(0).NewStream()
	ok(t, s.End(EndNormal))
	ok(t, p.InjectFaults([]Fault{{At: "proxy_on_tick", Trap: true}}))
	if _, err := p.Worker(0).NewStream().RequestHeaders(get, true); err != nil {
		t.Errorf("after new faults: %v", err)
	}
}

// Faults of the configuration are there when the canary starts.
func TestConfigFaults(t *testing.T) {
	_, err := New(context.Background(), Config{Wasm: guest(t, "mute"), Faults: []Fault{{At: "proxy_on_configure", Worker: "canary", Trap: true}}})
	if !errors.Is(err, ErrTrap) {
		t.Errorf("err %v", err)
	}
	_, err = New(context.Background(), Config{Wasm: guest(t, "mute"), Faults: []Fault{{At: "proxy_on_configure"}}})
	if !errors.Is(err, ErrConfig) || !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), "faults[0]: ") {
		t.Errorf("err %v", err)
	}
}

// What is refused leaves the earlier faults as they are.
func TestInjectFaultsRefuses(t *testing.T) {
	p := newProbe(t, "request_headers sdset key v 0")
	ok(t, p.InjectFaults([]Fault{{At: "env.proxy_set_shared_data", Answer: "EMPTY"}}))
	if err := p.InjectFaults([]Fault{{At: "env.proxy_log", Trap: true}, {At: "nowhere", Trap: true}}); !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), "faults[1]: ") {
		t.Errorf("err %v", err)
	}
	p.pass()
	p.results("sdset key v 0 = 7")
}

// On a clock that runs by itself a delay takes its time.
func TestFaultDelaysOnARealClock(t *testing.T) {
	p := newProbe(t, "", func(c *Config) { c.Clock = NewRealClock() })
	ok(t, p.InjectFaults([]Fault{{At: "proxy_on_request_headers", Delay: "1ms"}}))
	before := p.clock.Monotonic()
	p.pass()
	if took := p.clock.Monotonic() - before; took < time.Millisecond {
		t.Errorf("took %v", took)
	}
}
