package hostsim

import (
	"errors"
	"testing"
	"time"
)

// An update reaches the same machines: a new root beside the old one, vm_start again; old streams keep the old root.
func TestReconfigure(t *testing.T) {
	p := newProbe(t, "configure tickevery 1000\nrequest_headers log 2 old\nlog log 2 old")
	old := p.Worker(0).NewStream()
	_, err := old.RequestHeaders(get, true)
	ok(t, err)
	p.heard()
	ok(t, p.Reconfigure([]byte("configure tickevery 1000\nrequest_headers log 2 new")))
	p.expect(`
		> context_create 3 0
		> vm_start 3 0
		> configure 3 50
		tickevery 1000 = 0`)
	p.pass()
	p.expect(`
		> context_create 4 3
		> request_headers 4 3 1
		new
		log 2 new = 0
		> response_headers 4 1 1
		> log 4
		> done 4
		> delete 4`)
	p.Advance(time.Second)
	p.expect("> tick 1\n> tick 3")

	p.Drain()
	p.Advance(time.Second)
	p.expect("> tick 1\n> tick 3") // the old stream still holds its root
	ok(t, old.End(EndClientGone))
	p.expect(`
		> log 2
		old
		log 2 old = 0
		> done 2
		> delete 2
		> done 1
		> delete 1`)
	p.Advance(time.Second)
	p.expect("> tick 3")
	if got := p.Counters().Callbacks["_initialize"]; got != 4 {
		t.Errorf("%d instances were made, want canary, main, worker and one more canary", got)
	}
}

// The canary alone sees a configuration that is refused.
func TestReconfigureRefused(t *testing.T) {
	p := newProbe(t, "request_headers log 2 old")
	for _, bad := range []string{"configure return 0", "configure panic boom"} {
		err := p.Reconfigure([]byte(bad))
		if !errors.Is(err, ErrRefused) && !errors.Is(err, ErrTrap) {
			t.Errorf("%s: err %v", bad, err)
		}
	}
	p.expect("")
	p.pass()
	p.results("old\nlog 2 old = 0")
}

// A reload after an update comes up with the new configuration.
func TestReloadAfterReconfigure(t *testing.T) {
	p := newProbe(t, "request_headers panic boom", func(c *Config) { c.FailurePolicy = FailReload })
	s := p.Worker(0).NewStream()
	if _, err := s.RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
		t.Fatalf("err %v", err)
	}
	ok(t, p.Reconfigure([]byte("request_headers log 2 new")))
	p.Advance(time.Second)
	p.heard()
	p.pass()
	p.results("new\nlog 2 new = 0")
}

// A root whose done answers false stays until proxy_done.
func TestDoneThatTakesItsTime(t *testing.T) {
	p := newProbe(t, `
		configure tickevery 1000
		configure finish
		done return 0`)
	ok(t, p.Reconfigure([]byte("configure tickevery 1000\ntick effective 1\ntick finish")))
	p.heard()
	p.Drain()
	p.expect("> done 1")
	p.Advance(time.Second)
	p.expect(`
		> tick 2
		effective 1 = 0
		finish = 0
		> delete 1`)
	p.Advance(time.Second)
	p.expect(`
		> tick 2
		effective 1 = 2
		finish = 1`)
}
