package hostsim

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Everything that a plugin can notice goes back: memory, random numbers, clock, timers, contexts, shared data, metrics,
// logs.
func TestRestore(t *testing.T) {
	p := newFree(t, `
		configure mdef 1 gauge
		request_headers random
		request_headers gonow
		request_headers sdadd count
		request_headers mrec gauge 7
		tick log 2 ticked
		request_headers tickevery 1000
		request_headers when 1 log 2 first`)
	p.pass()
	p.heard()
	before, err := p.Snapshot()
	ok(t, err)
	hash := p.Worker(0).MemoryHash()
	run := func() string {
		p.seen = len(p.Logs())
		p.Advance(300 * time.Millisecond)
		p.pass()
		p.Advance(2 * time.Second)
		return p.heard()
	}
	first := run()
	if p.shared("count") != "2" || p.Worker(0).MemoryHash() == hash {
		t.Fatalf("nothing has changed: count %s", p.shared("count"))
	}
	calls := p.Counters().Callbacks["proxy_on_request_headers"]
	p.SharedData().Set("other", nil, 0)
	for range 2 {
		ok(t, p.Restore(before))
		if p.shared("count") != "1" || p.SharedData().Len() != 1 || p.Worker(0).MemoryHash() != hash || p.Now() != VirtualEpoch {
			t.Errorf("count %s of %d keys, clock %v", p.shared("count"), p.SharedData().Len(), p.Now())
		}
		if again := run(); again != first {
			t.Errorf("heard\n%s\nafter the first run heard\n%s", again, first)
		}
	}
	if n := p.Counters().Callbacks["proxy_on_request_headers"]; n != calls+2 {
		t.Errorf("%d callbacks counted, want %d: counters go on", n, calls+2)
	}
}

// A machine that has died, been replaced or grown comes back as it was.
func TestRestoreAfterACrash(t *testing.T) {
	for _, policy := range []FailurePolicy{FailClosed, FailReload} {
		p := newFree(t, "request_headers when 2 panic boom\nrequest_headers random", func(c *Config) { c.FailurePolicy = policy })
		p.pass()
		p.heard()
		hash := p.Worker(0).MemoryHash()
		before, err := p.Snapshot()
		ok(t, err)
		s := p.Worker(0).NewStream()
		if _, err := s.RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
			t.Fatalf("err %v", err)
		}
		ok(t, s.End(EndNormal))
		p.Advance(time.Minute)
		if s = p.Worker(0).NewStream(); policy == FailReload {
			_, err = s.RequestHeaders(get, true) // in a machine of its own
			ok(t, err)
		}
		ok(t, p.Restore(before))
		if p.Worker(0).Err() != nil || p.Worker(0).MemoryHash() != hash || p.Worker(0).OpenStreams() != 0 {
			t.Errorf("policy %d: err %v, %d streams", policy, p.Worker(0).Err(), p.Worker(0).OpenStreams())
		}
		if _, err := p.Worker(0).NewStream().RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
			t.Errorf("policy %d: the second call again: %v", policy, err)
		}
		want := map[FailurePolicy]uint64{FailClosed: 3, FailReload: 4}[policy]
		if n := p.Counters().Callbacks["proxy_on_request_headers"]; n != want {
			t.Errorf("policy %d: %d callbacks counted, want %d", policy, n, want)
		}
	}
}

func TestRestoreAfterGrowth(t *testing.T) {
	p := newFree(t, "request_headers when 2 garbage 1 30000000\nrequest_headers random")
	p.pass()
	before, err := p.Snapshot()
	ok(t, err)
	size, hash := p.Worker(0).Memory(), p.Worker(0).MemoryHash()
	for range 2 {
		p.heard()
		p.pass()
		if p.Worker(0).Memory() <= size {
			t.Fatalf("memory has not grown from %d", size)
		}
		ok(t, p.Restore(before))
		if p.Worker(0).Memory() != size || p.Worker(0).MemoryHash() != hash {
			t.Errorf("memory of %d bytes, was %d", p.Worker(0).Memory(), size)
		}
	}
}

// Queues, notices of them, and how often a fault has been played go back too.
func TestRestoreQueuesAndFaults(t *testing.T) {
	p := newFree(t, "configure qregister q\nrequest_headers enqueue 1 hello\nqueue_ready dequeue 1", func(c *Config) {
		c.Faults = []Fault{{At: "env.proxy_enqueue_shared_queue", Nth: 2, Answer: "INTERNAL_FAILURE"}}
	})
	p.pass()
	before, err := p.Snapshot()
	ok(t, err)
	run := func() string {
		p.seen = len(p.Logs())
		p.pass()
		p.Advance(0)
		p.pass()
		return p.heard()
	}
	first := run()
	if p.FaultsFired()[0] != 1 {
		t.Fatalf("fired %v in\n%s", p.FaultsFired(), first)
	}
	p.SharedData().Queue("another")
	p.Advance(0) // the notice that waited, and is to wait again, has been delivered
	ok(t, p.Restore(before))
	if n := p.SharedData().Queue("q").Len(); n != 1 || p.FaultsFired()[0] != 0 {
		t.Errorf("%d messages, fired %v", n, p.FaultsFired())
	}
	if again := run(); again != first {
		t.Errorf("heard\n%s\nafter the first run heard\n%s", again, first)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	p, other := newFree(t, "request_headers return 0"), newFree(t, "request_headers return 0")
	before, err := p.Snapshot()
	ok(t, err)
	if err := other.Restore(before); !errors.Is(err, ErrSnapshot) {
		t.Errorf("of another host: %v", err)
	}
	if _, err := newProbe(t, "").Snapshot(); !errors.Is(err, ErrSnapshot) {
		t.Errorf("while it is recorded: %v", err)
	}
	s := p.Worker(0).NewStream()
	if _, err := p.Snapshot(); !errors.Is(err, ErrSnapshot) {
		t.Errorf("with an open stream: %v", err)
	}
	ok(t, s.End(EndNormal))
	ok(t, p.Reconfigure([]byte("request_headers return 0")))
	if err := p.Restore(before); !errors.Is(err, ErrSnapshot) {
		t.Errorf("after a reconfiguration: %v", err)
	}
	before, err = p.Snapshot()
	ok(t, err)
	ok(t, p.Update(t.Context(), Update{VMConfig: []byte("another")}))
	p.Drain()
	if err := p.Restore(before); !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), "of another host or configuration") {
		t.Errorf("after an update: %v", err)
	}
}

// A call-out that had no answer has none again.
func TestRestoreBeforeAnAnswer(t *testing.T) {
	var asked *HTTPCall
	p := newFree(t, "request_headers httpcall up 0 ~ :method=GET :path=/ :authority=a", func(c *Config) {
		c.HTTPCall = func(c *HTTPCall) bool { asked = c; return true }
	})
	p.pass()
	before, err := p.Snapshot()
	ok(t, err)
	p.heard()
	for range 2 {
		p.Advance(time.Second)
		p.expect("")
		asked.Respond(HTTPResponse{Headers: reply})
		p.Advance(time.Second)
		p.expect("> http_call_response 1 4 1 0 0")
		ok(t, p.Restore(before))
		p.seen = len(p.Logs())
	}
}

// A machine that comes after a crash has the random numbers that it had.
func TestRestoreBeforeAReload(t *testing.T) {
	p := newFree(t, "request_headers when 1 random\nrequest_headers when 2 panic boom", func(c *Config) { c.FailurePolicy = FailReload })
	p.pass()
	before, err := p.Snapshot()
	ok(t, err)
	run := func() string {
		p.seen = len(p.Logs())
		s := p.Worker(0).NewStream()
		_, err := s.RequestHeaders(get, true)
		if !errors.Is(err, ErrTrap) {
			t.Fatalf("err %v", err)
		}
		ok(t, s.End(EndNormal))
		p.Advance(time.Minute)
		p.seen = len(p.Logs())
		p.pass()
		return p.heard()
	}
	first := run()
	ok(t, p.Restore(before))
	if again := run(); again != first || !strings.Contains(first, "random") {
		t.Errorf("heard\n%s\nafter the first run heard\n%s", again, first)
	}
}

// The time from which a reload may be tried again goes back too.
func TestRestoreBeforeAFailedReload(t *testing.T) {
	p := newFree(t, "request_headers when 1 panic boom", func(c *Config) { c.FailurePolicy = FailReload })
	served := func() bool { // and then it crashes
		s := p.Worker(0).NewStream()
		_, err := s.RequestHeaders(get, true)
		ok(t, s.End(EndNormal))
		return errors.Is(err, ErrTrap)
	}
	served()
	before, err := p.Snapshot()
	ok(t, err)
	p.Advance(DefaultReloadBackoff)
	ok(t, p.InjectFaults([]Fault{{At: "proxy_on_configure", Trap: true}}))
	if served() || p.FaultsFired()[0] != 1 {
		t.Fatalf("fired %v", p.FaultsFired())
	}
	ok(t, p.Restore(before))
	p.Advance(DefaultReloadBackoff)
	if !served() {
		t.Error("no reload after the backoff")
	}
}

// A host that has been shut down serves again when it is set back to the time before.
func TestRestoreAfterShutdown(t *testing.T) {
	p := newFree(t, "request_headers log 2 served")
	before, err := p.Snapshot()
	ok(t, err)
	for range 2 {
		ok(t, p.Shutdown())
		ok(t, p.Restore(before))
		p.seen = len(p.Logs())
		p.pass()
		p.results("served\nlog 2 served = 0")
	}
}
