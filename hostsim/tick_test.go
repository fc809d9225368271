package hostsim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTicks(t *testing.T) {
	p := newProbe(t, `
		configure tickevery 100
		tick hostnow
		tick when 3 tickevery 50
		tick when 5 tickevery 0`, func(c *Config) { c.Workers = 2 })
	p.Advance(99 * time.Millisecond)
	p.expect("")
	p.Advance(time.Second)
	var main, workers []string
	for _, e := range p.Logs() {
		if strings.HasPrefix(e.Message, "hostnow") {
			at := fmt.Sprint(e.Time.Sub(VirtualEpoch))
			if !strings.HasSuffix(e.Message, e.Time.Format(time.RFC3339Nano)) {
				t.Errorf("the plugin saw %q at %v", e.Message, e.Time)
			}
			if e.Worker == MainThread {
				main = append(main, at)
			} else {
				workers = append(workers, fmt.Sprint(e.Worker, " ", at))
			}
		}
	}
	if got := strings.Join(main, " "); got != "100ms 200ms 300ms 350ms 400ms" {
		t.Errorf("main thread ticked at %s", got)
	}
	if got := strings.Join(workers, ", "); got != "0 100ms, 1 100ms, 0 200ms, 1 200ms, 0 300ms, 1 300ms, 0 350ms, 1 350ms, 0 400ms, 1 400ms" {
		t.Errorf("workers ticked at %s", got)
	}
	if got := p.Now().Sub(VirtualEpoch); got != 1099*time.Millisecond {
		t.Errorf("clock at %v", got)
	}
}

// A worker runs what is due on it, and no other's.
func TestRunDue(t *testing.T) {
	p := newProbe(t, "configure tickevery 100\ntick log 2 ticked", func(c *Config) { c.Workers = 2 })
	if p.Worker(0).RunDue() {
		t.Error("something was due at once")
	}
	p.clock.(*VirtualClock).Advance(100 * time.Millisecond)
	if !p.Worker(0).RunDue() || p.Worker(0).RunDue() {
		t.Error("the tick did not run, or twice")
	}
	for _, e := range p.Logs() {
		if e.Message == "ticked" && e.Worker != 0 {
			t.Errorf("worker %d ticked", e.Worker)
		}
	}
}

// A stepped clock for RunTicks: each look at it is a step on.
type steppingClock struct {
	VirtualClock
	step time.Duration
}

func (c *steppingClock) Monotonic() time.Duration {
	c.Advance(c.step)
	return c.VirtualClock.Monotonic()
}

func TestRunTicks(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ticks := 0
	p := newProbe(t, "configure tickevery 10\ntick log 2 ticked", func(c *Config) {
		c.Clock = &steppingClock{step: time.Millisecond}
		c.Log = func(e LogEntry) {
			if e.Message == "ticked" {
				if ticks++; ticks == 5 {
					cancel()
				}
			}
		}
	})
	if err := p.RunTicks(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
	if ticks < 5 {
		t.Errorf("%d ticks", ticks)
	}
}

// The next event is what Advance would run next: a tick, or an answer that comes before it.
func TestNextEvent(t *testing.T) {
	p := newProbe(t, "configure tickevery 100\ntick"+aCall, func(c *Config) {
		c.HTTPCall = func(call *HTTPCall) bool {
			call.Respond(HTTPResponse{Headers: Headers{{":status", "200"}}, After: 30 * time.Millisecond})
			return true
		}
	})
	for i, want := range []time.Duration{100, 30, 70, 30} {
		if after, ok := p.NextEvent(); !ok || after != want*time.Millisecond {
			t.Errorf("event %d: after %v, %t, want %v", i, after, ok, want*time.Millisecond)
		}
		p.Advance(want * time.Millisecond)
	}
	still := newProbe(t, "")
	if after, ok := still.NextEvent(); ok {
		t.Errorf("nothing ticks, and there is an event after %v", after)
	}
}
