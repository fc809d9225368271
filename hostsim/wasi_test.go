package hostsim

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"
)

// The time of day stands still until the test moves it, for the host call and for the language's own clock.
func TestVirtualTime(t *testing.T) {
	p := newProbe(t, "request_headers hostnow\nrequest_headers gonow")
	p.pass()
	p.Advance(1500 * time.Millisecond)
	p.pass()
	p.results(`
		hostnow = 0 2026-01-01T00:00:00Z
		gonow = 0 2026-01-01T00:00:00Z
		hostnow = 0 2026-01-01T00:00:01.5Z
		gonow = 0 2026-01-01T00:00:01.5Z`)
}

// poll_oneoff works from Envoy 1.39 on; before, a Go module that sleeps is dead.
func TestSleep(t *testing.T) {
	for _, tt := range []struct {
		profile Profile
		traps   bool
	}{{Envoy140(), false}, {Envoy136(), true}, {Permissive(), false}} {
		p := newProbe(t, "request_headers sleep 1", func(c *Config) { c.Profile = tt.profile })
		s := p.Worker(0).NewStream()
		if _, err := s.RequestHeaders(get, true); errors.Is(err, ErrTrap) != tt.traps {
			t.Errorf("%s: err %v, want a trap: %v", tt.profile.Name, err, tt.traps)
		}
	}
}

// Random numbers come from the seed and differ from worker to worker.
func TestRandomIsSeeded(t *testing.T) {
	run := func(seed uint64) []string {
		p := newProbe(t, "request_headers random", func(c *Config) { c.Seed, c.Workers = seed, 2 })
		p.pass()
		s := p.Worker(1).NewStream()
		_, err := s.RequestHeaders(get, true)
		ok(t, err)
		var out []string
		for line := range strings.SplitSeq(p.heard(), "\n") {
			if strings.HasPrefix(line, "random") {
				out = append(out, line)
			}
		}
		return out
	}
	a, again, b := run(1), run(1), run(2)
	if a[0] != again[0] || a[1] != again[1] {
		t.Errorf("seed 1 gave %v, then %v", a, again)
	}
	if a[0] == b[0] || a[0] == a[1] {
		t.Errorf("seed 1 gave %v, seed 2 %v", a, b)
	}
}

func TestStandardErrorIsLogged(t *testing.T) {
	p := newProbe(t, "request_headers print hello", func(c *Config) { c.LogLevel = LogError })
	p.pass()
	if got := p.heard(); got != "hello\n" { // Go writes text and newline apart; a newline alone is an empty entry
		t.Errorf("heard %q", got)
	}
}

func TestEnvironmentReachesTheModule(t *testing.T) {
	// With collection off, garbage stays; with it on, it goes.
	memory := func(gogc string) uint64 {
		p := newProbe(t, "request_headers garbage 200 100000", func(c *Config) { c.Env = map[string]string{"GOGC": gogc, "A": "b"} })
		p.pass()
		return p.Worker(0).Memory()
	}
	if off, on := memory("off"), memory("100"); off < on+(10<<20) {
		t.Errorf("memory %d with GOGC=off, %d with 100", off, on)
	}
}

// Go's collector finishes its cycles on the virtual clock, whose monotonic side moves by a step a read.
func TestCollectorKeepsUpOnTheVirtualClock(t *testing.T) {
	p := newFree(t, "request_headers garbage 20 1000000", func(c *Config) { c.LogLevel = LogCritical })
	for range 300 {
		p.pass()
	}
	if got := p.Worker(0).Memory(); got > 64<<20 {
		t.Errorf("memory %d after 6 GB of garbage", got)
	}
}

// The same seed, clock and calls leave the same memory behind, to the last bit, collections included.
func TestRunsAreBitIdentical(t *testing.T) {
	run := func() [sha256.Size]byte {
		p := newProbe(t, "configure tickevery 100\nrequest_headers garbage 100 10000\nrequest_headers sdadd n\nrequest_headers random",
			func(c *Config) { c.Seed = 7 })
		for range 50 {
			p.pass()
			p.Advance(70 * time.Millisecond)
		}
		v := p.Worker(0).vm
		memory, _ := v.mem.Read(0, v.mem.Size())
		return sha256.Sum256(memory)
	}
	if a, b := run(), run(); a != b {
		t.Errorf("memory hashes %x and %x", a, b)
	}
}

func TestMemoryLimit(t *testing.T) {
	p := newProbe(t, "request_headers garbage 1 40000000", func(c *Config) { c.MemoryLimitPages = 320 })
	s := p.Worker(0).NewStream()
	if _, err := s.RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
		t.Errorf("err %v", err)
	}
	if got := p.Worker(0).Memory(); got == 0 || got > 320<<16 {
		t.Errorf("memory %d", got)
	}
}

func TestLogLevelFilters(t *testing.T) {
	var sunk []string
	p := newProbe(t, "request_headers log 1 low\nrequest_headers log 3 high\nrequest_headers loglevel\nrequest_headers log 9 odd",
		func(c *Config) {
			c.LogLevel, c.LogLimit = LogInfo, 3
			c.Log = func(e LogEntry) { sunk = append(sunk, e.Level.String()+" "+e.Message) }
		})
	p.pass()
	want := "info log 1 low = 0|warn high|info log 3 high = 0|info loglevel = 0 2|info log 9 odd = 2"
	if got := strings.Join(sunk, "|"); got != want {
		t.Errorf("sunk %s, want %s", got, want)
	}
	if got := p.Logs(); len(got) != 3 || got[0].Message != "log 3 high = 0" {
		t.Errorf("kept %v", got)
	}
}

func TestClocks(t *testing.T) {
	real := NewRealClock()
	if a, b := real.Monotonic(), real.Monotonic(); a < monotonicStart || b < a {
		t.Errorf("real clock read %v, then %v", a, b)
	}
	v := NewVirtualClock()
	v.Advance(-time.Hour)
	if v.Monotonic() != monotonicStart || !v.Now().Equal(VirtualEpoch) {
		t.Errorf("virtual clock went to %v", v.Now())
	}
	h, err := New(context.Background(), Config{Wasm: minimal().bytes(), Clock: real})
	ok(t, err)
	defer h.Close()
	defer func() {
		if recover() == nil {
			t.Error("Advance moved the real clock")
		}
	}()
	h.Advance(time.Second)
}
