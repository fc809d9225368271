package hostsim

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// Cases of proxy-wasm-cpp-host's own tests, restated. Others are elsewhere: SharedData of shared_data_test.cc in
// TestSharedDataRules and TestSharedDataUnderConcurrentWorkers, its queue's in TestSharedQueueStatuses and
// TestQueueUnderConcurrentWorkers, Environment, Clock and Random* of exports_test.cc in TestWASIAnswers, the memory limit of
// runtime_test.cc in TestMemoryLimit, AllowOnHeadersStopIteration in testdata/conformance/headers.txt, MallocNoHostcalls,
// MallocWithLog and MallocWithHostcall of security_test.cc in TestAllocationIsARestrictedPhase and TestPhases.

// wasm_test.cc, AlwaysApplyCanary: each new plugin configuration is tried in an instance of its own before any that serves
// sees it, whether that succeeds or not, and its traces are gone afterwards.
func TestCanaryIsAlwaysApplied(t *testing.T) {
	p := newProbe(t, "configure log 2 first")
	for i, tt := range []struct {
		config  string
		refused bool
	}{{"configure log 2 second", false}, {"configure return 0", true}, {"configure panic boom", true}, {"configure log 2 third", false}} {
		before := len(p.Logs())
		err := p.Reconfigure([]byte(tt.config))
		if (err != nil) != tt.refused {
			t.Fatalf("%s: err %v", tt.config, err)
		}
		var workers []int
		for _, e := range p.Logs()[before:] {
			if len(workers) == 0 || workers[len(workers)-1] != e.Worker {
				workers = append(workers, e.Worker)
			}
		}
		want := []int{Canary, MainThread, 0}
		if tt.refused {
			want = want[:1]
		}
		if fmt.Sprint(workers) != fmt.Sprint(want) {
			t.Errorf("configuration %d was seen by %v, want %v", i, workers, want)
		}
	}
	// Of the canary's work nothing is left but what all instances share.
	if got := p.Worker(0).Counters().Callbacks["proxy_on_configure"]; got != 3 {
		t.Errorf("worker 0 was configured %d times", got)
	}
}

// shared_queue_test.cc, NextQueueToken and SingleThread: ids begin at 1, one a name and vm_id; what was sent before a queue
// is registered again is kept.
func TestQueueIDs(t *testing.T) {
	d := NewSharedData()
	a, b := d.Space("1"), d.Space("2")
	if a.Queue("x").ID() != 1 || a.Queue("y").ID() != 2 || b.Queue("x").ID() != 3 || a.Queue("x").ID() != 1 {
		t.Error("ids are not counted up by name and vm_id")
	}
	if d.queue("1", "z") != nil || d.queue("3", "x") != nil || d.queueByID(0) != nil || d.queueByID(4) != nil {
		t.Error("found what was never registered")
	}
	a.Queue("x").Enqueue([]byte("message1"))
	a.Queue("x").Enqueue([]byte("message2"))
	for _, want := range []string{"message1", "message2"} {
		if m, ok := a.Queue("x").Dequeue(); string(m) != want || !ok {
			t.Errorf("took %q %v, want %q", m, ok, want)
		}
	}
	if _, ok := a.Queue("x").Dequeue(); ok || b.Queue("x").Len() != 0 {
		t.Error("there is more")
	}
}

// pairs_util_test.cc, EncodeDecode.
func TestPairsRoundTrip(t *testing.T) {
	h := Headers{{"a", "b"}, {"", ""}, {"c", ""}, {"", "d"}, {"a", "\x00\xff"}}
	b := encodePairs(h)
	if got := decodePairs(b); fmt.Sprint(got) != fmt.Sprint(h) {
		t.Errorf("%q came back as %q", h, got)
	}
	for cut := range b {
		if got := decodePairs(b[:cut]); got != nil {
			t.Errorf("%d of %d bytes read as %q", cut, len(b), got)
		}
	}
}

// fuzz/pairs_util_fuzzer.cc: nothing that a module hands over as a map harms the host, and what can be read can be written.
func FuzzPairs(f *testing.F) {
	f.Add(encodePairs(Headers{{"a", "b"}, {"c", ""}}))
	f.Add([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add(bytes.Repeat([]byte{0}, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		h := decodePairs(b)
		if h == nil {
			return
		}
		again := decodePairs(encodePairs(h))
		if fmt.Sprint(again) != fmt.Sprint(h) {
			t.Errorf("%q came back as %q", h, again)
		}
	})
}

// wasm_test.cc, GetOrCreateThreadLocalWasmFailCallbacks: a crash costs the thread its instance, with all its plugin
// contexts, and no other thread's. A new instance has none of the old one's.
func TestACrashIsOneThreads(t *testing.T) {
	p := newProbe(t, "request_headers when 2 panic boom", func(c *Config) { c.Workers, c.FailurePolicy = 2, FailReload })
	ok(t, p.Reconfigure([]byte("request_headers when 2 panic boom")))
	p.pass()
	if _, err := p.Worker(0).NewStream().RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
		t.Fatal(err)
	}
	if p.Worker(0).Err() == nil || p.Worker(1).Err() != nil || p.Main().Err() != nil {
		t.Error("not the first worker alone has died")
	}
	p.Advance(DefaultReloadBackoff)
	p.heard()
	p.pass()
	p.expect(`> context_create 1 0
		> vm_start 1 0
		> configure 1 33
		> context_create 2 1
		> request_headers 2 3 1
		> response_headers 2 1 1
		> log 2
		> done 2
		> delete 2`)
}
