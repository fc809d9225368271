package hostsim

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// said returns what all threads have logged from the entry number begin on.
func said(h *Host, begin int) string {
	var lines []string
	for _, e := range h.Logs()[begin:] {
		lines = append(lines, onThread(e.Worker)+": "+e.Message)
	}
	return strings.Join(lines, "\n")
}

func TestShutdown(t *testing.T) {
	p := newProbe(t, "configure tickevery 1000", func(c *Config) { c.Workers = 2 })
	begin := len(p.Logs())
	if err := errors.Join(p.Shutdown(), p.Shutdown()); err != nil {
		t.Fatal(err)
	}
	p.Advance(time.Minute)
	diff(t, said(p.Host, begin), `on worker 0: > done 1
		on worker 0: > delete 1
		on worker 1: > done 1
		on worker 1: > delete 1
		on the main thread: > done 1
		on the main thread: > delete 1`)
}

// A context that is not done is not deleted: nothing waits for it. It gets no ticks either.
func TestShutdownDoesNotWait(t *testing.T) {
	p := newProbe(t, "done return 0\nconfigure tickevery 1000")
	begin := len(p.Logs())
	ok(t, p.Shutdown())
	p.Advance(time.Minute)
	diff(t, said(p.Host, begin), "on worker 0: > done 1\non the main thread: > done 1")
}

// A context with an open stream is told nothing, not even by its timer.
func TestShutdownWithAnOpenStream(t *testing.T) {
	p := newProbe(t, "configure tickevery 1000")
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	begin := len(p.Logs())
	ok(t, p.Shutdown())
	p.Advance(time.Minute)
	diff(t, said(p.Host, begin), "on the main thread: > done 1\non the main thread: > delete 1")
	ok(t, s.End(EndNormal))
}

// Streams that come too late are not served, and the plugin hears nothing of them.
func TestNoStreamAfterShutdown(t *testing.T) {
	for policy, want := range map[FailurePolicy]Flow{FailClosed: Reply, FailReload: Reply, FailOpen: Forward} {
		p := newProbe(t, "", func(c *Config) { c.FailurePolicy = policy })
		ok(t, p.Shutdown())
		begin := len(p.Logs())
		s := p.Worker(0).NewStream()
		step, err := s.RequestHeaders(get, true)
		if err != nil || step.Flow != want {
			t.Errorf("policy %d: %v, %v", policy, step.Flow, err)
		}
		ok(t, s.End(EndNormal))
		diff(t, said(p.Host, begin), "")
	}
}

// A crash at the end is in the error, and keeps no other thread from its end.
func TestShutdownReportsTraps(t *testing.T) {
	p := newProbe(t, "done panic boom", func(c *Config) { c.Workers = 2 })
	err := p.Shutdown()
	if !errors.Is(err, ErrTrap) || strings.Count(err.Error(), "trapped in proxy_on_done") != 3 {
		t.Errorf("error %v", err)
	}
}
