package hostsim

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The rules of proxy-wasm-cpp-host's SharedData, as a plugin meets them.
func TestSharedDataRules(t *testing.T) {
	p := newProbe(t, `
		request_headers sdget key
		request_headers sdset key one 77
		request_headers sdget key
		request_headers sdset key two last
		request_headers sdset key three last
		request_headers sdset key four 0
		request_headers sdget key
		request_headers sdset key five 0xffffffff
		request_headers sdset fresh made 0xffffffff
		request_headers sdset fresh again 0xffffffff
		request_headers sdset key ~ 0
		request_headers sdget key`)
	p.pass()
	p.results(`
		sdget key = 1
		sdset key one 77 = 0
		sdget key = 0 one
		sdset key two last = 0
		sdset key three last = 8
		sdset key four 0 = 0
		sdget key = 0 four
		sdset key five 0xffffffff = 8
		sdset fresh made 0xffffffff = 0
		sdset fresh again 0xffffffff = 8
		sdset key ~ 0 = 0
		sdget key = 0`)
	if got := p.SharedData().Keys(); !slices.Equal(got, []string{"fresh", "key"}) {
		t.Errorf("keys %v", got)
	}
	if got := p.SharedData().Bytes(); got != len("fresh")+len("made")+len("key") {
		t.Errorf("%d bytes", got)
	}
}

// One counter numbers the writes of all namespaces and skips 0.
func TestCASCounterSkipsZero(t *testing.T) {
	d := NewSharedData()
	d.cas = math.MaxUint32 - 1
	d.Space("a").Set("k", nil, 0)
	if _, cas, _ := d.Space("a").Get("k"); cas != math.MaxUint32 {
		t.Errorf("cas %d", cas)
	}
	d.Space("b").Set("k", nil, 0)
	if _, cas, _ := d.Space("b").Get("k"); cas != 1 {
		t.Errorf("cas %d after the overflow, want 1", cas)
	}
}

// Plugins of one process meet in a namespace if they have the same vm_id, and else do not.
func TestNamespaces(t *testing.T) {
	shared := NewSharedData()
	for _, vmID := range []string{"a", "a", "b"} {
		p := newProbe(t, "configure sdget key\nconfigure sdset key "+vmID+" 0", func(c *Config) {
			c.VMID, c.SharedData = vmID, shared
		})
		_ = p
	}
	if v, _, _ := shared.Space("a").Get("key"); string(v) != "a" {
		t.Errorf("a holds %q", v)
	}
	if v, _, _ := shared.Space("b").Get("key"); string(v) != "b" {
		t.Errorf("b holds %q", v)
	}
	if got := shared.Space("").Len(); got != 0 {
		t.Errorf("%d keys in the empty namespace", got)
	}
}

// Workers on goroutines of their own lose no count.
func TestSharedDataUnderConcurrentWorkers(t *testing.T) {
	const workers, each = 2, 200
	p := newProbe(t, "request_headers sdadd count", func(c *Config) { c.Workers, c.LogLevel = workers, LogCritical })
	done := make(chan error)
	for i := range workers {
		go func() {
			for range each {
				s := p.Worker(i).NewStream()
				if _, err := s.RequestHeaders(get, true); err != nil {
					done <- err
					return
				}
				if err := s.End(EndClientGone); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range workers {
		ok(t, <-done)
	}
	if v, _, _ := p.SharedData().Get("count"); string(v) != fmt.Sprint(workers*each) {
		t.Errorf("count %s, want %d", v, workers*each)
	}
}

// A hook can hold one worker between read and write, so that a race is played on purpose.
func TestOnSharedDataForcesARace(t *testing.T) {
	p := newProbe(t, "request_headers sdadd count", func(c *Config) { c.Workers = 2 })
	raced := false
	p.OnSharedData(func(worker int, op SharedOp, key string) {
		if worker == 0 && op == SharedSet && !raced {
			raced = true
			s := p.Worker(1).NewStream()
			_, err := s.RequestHeaders(get, true)
			ok(t, err)
			ok(t, s.End(EndNormal))
		}
	})
	p.pass()
	p.OnSharedData(nil)
	p.results("sdadd count = 0 1\nsdadd count = 0 2") // worker 1 first, at its first try; worker 0 at its second
}

// A hook answers in place of a host function.
func TestOnHostCall(t *testing.T) {
	p := newProbe(t, "request_headers sdset key value 0\nrequest_headers sdget key", func(c *Config) { c.Workers = 2 })
	p.OnHostCall(func(worker int, name string) (Status, bool) {
		return StatusInternalFailure, worker == 0 && name == "env.proxy_set_shared_data"
	})
	p.pass()
	p.results("sdset key value 0 = 10\nsdget key = 1")
	p.OnHostCall(nil)
	p.pass()
	p.results("sdset key value 0 = 0\nsdget key = 0 value")
}
