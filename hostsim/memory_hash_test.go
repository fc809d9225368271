package hostsim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// lives runs a seeded life of a plugin on three workers: requests with bodies and shared data, garbage, ticks,
// workers in turn and interleaved. It returns the memory of every virtual machine.
func lives(t testing.TB, seed uint64, lifecycles int) (hashes []string) {
	p := newFree(t, `
		configure tickevery 100
		tick sdadd ticks
		request_headers sdadd count
		request_headers random
		request_headers garbage 3 30000
		request_headers replace 0 x-seen yes
		request_body buf 0 0 100
		response_headers gonow
		log hostnow`, func(c *Config) { c.Workers, c.Seed, c.LogLevel, c.LogLimit = 3, seed, LogCritical, 1 })
	rng := rand.New(rand.NewPCG(seed, 1))
	life := func(w *Worker, size int) {
		s := w.NewStream()
		_, err := s.RequestHeaders(get, false)
		ok(t, err)
		_, err = s.RequestBody(make([]byte, size), true)
		ok(t, err)
		_, err = s.ResponseHeaders(reply, true)
		ok(t, err)
		ok(t, s.End(EndReason(size%4)))
	}
	for i := range lifecycles / 4 {
		life(p.Worker(rng.IntN(3)), rng.IntN(2000))
		var fns []func(*Worker)
		for range 3 {
			size := rng.IntN(2000)
			fns = append(fns, func(w *Worker) { life(w, size) })
		}
		p.Interleave(rng.Uint64(), fns...)
		if i%16 == 0 {
			p.Advance(time.Duration(rng.IntN(300)) * time.Millisecond)
		}
	}
	for _, w := range p.threads() {
		if w.Memory() > 32<<20 { // of some 100 MB allocated
			t.Errorf("%d bytes of memory: the garbage collector has not run", w.Memory())
		}
		hashes = append(hashes, fmt.Sprintf("%d: %d bytes %x", w.Index(), w.Memory(), w.MemoryHash()))
	}
	return hashes
}

// Thousands of lifecycles on several workers, with the garbage collector running, leave every bit of memory the same: the
// second time, and not with another seed.
func TestMemoryIsTheSameBitForBit(t *testing.T) {
	const lifecycles = 4000
	first, again, other := lives(t, 1, lifecycles), lives(t, 1, lifecycles), lives(t, 2, 40)
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("first\n%q\nthen\n%q", first, again)
	}
	for i := range first {
		if first[i] == other[i] {
			t.Errorf("another seed left the same memory: %s", first[i])
		}
	}
	if s := fmt.Sprint(first[1] == first[2], first[2] == first[3]); s != "false false" {
		t.Errorf("workers with lives of their own have the same memory: %q", first)
	}
}

// A machine that has died has no memory to hash.
func TestMemoryHashOfTheDead(t *testing.T) {
	p := newFree(t, "request_headers panic boom")
	s := p.Worker(0).NewStream()
	if _, err := s.RequestHeaders(get, true); err == nil {
		t.Fatal("no trap")
	}
	if sum := p.Worker(0).MemoryHash(); sum != [32]byte{} {
		t.Errorf("%x", sum)
	}
}
