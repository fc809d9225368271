package replica

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func ids(first, count uint64) []uint64 {
	out := make([]uint64, count)
	for i := range out {
		out[i] = first + uint64(i)
	}
	return out
}

func TestPrefixCacheCases(t *testing.T) {
	type step struct {
		prompt []uint64
		hits   int
	}
	tests := []struct {
		name     string
		capacity int
		steps    []step
	}{
		{"a growing conversation hits all that it had", 10, []step{{ids(1, 3), 0}, {ids(1, 5), 3}, {ids(1, 8), 5}}},
		{"a miss in the middle hides what follows", 10, []step{{[]uint64{1, 2, 3}, 0}, {[]uint64{1, 9, 3}, 1}}},
		{"nothing in common", 10, []step{{ids(1, 3), 0}, {ids(4, 3), 0}}},
		{"the tail goes first", 4, []step{{ids(1, 4), 0}, {ids(11, 2), 0}, {ids(1, 4), 2}}},
		{"the least recently used prompt goes first", 4, []step{{ids(1, 2), 0}, {ids(11, 2), 0}, {ids(1, 2), 2}, {ids(21, 2), 0}, {ids(1, 2), 2}, {ids(11, 2), 0}}},
		{"a prompt beyond the capacity keeps its beginning", 3, []step{{ids(1, 9), 0}, {ids(1, 9), 3}}},
		{"no bound", 0, []step{{ids(1, 1000), 0}, {ids(5000, 1000), 0}, {ids(1, 1000), 1000}}},
		{"empty prompt", 2, []step{{nil, 0}}},
		{"one block many times", 2, []step{{[]uint64{7, 7, 7}, 0}, {[]uint64{7, 7, 7}, 3}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewPrefixCache(tt.capacity)
			for i, s := range tt.steps {
				if got := c.Admit(s.prompt); got != s.hits {
					t.Errorf("step %d: %d hits, want %d", i, got, s.hits)
				}
			}
		})
	}
}

// naiveCache does the same with a sorted list, the most recently used block first, and nothing clever.
type naiveCache struct {
	capacity int
	order    []uint64
}

func (n *naiveCache) admit(prompt []uint64) int {
	hits := 0
	for hits < len(prompt) && slices.Contains(n.order, prompt[hits]) {
		hits++
	}
	if len(prompt) > n.capacity {
		prompt = prompt[:n.capacity]
	}
	for i := len(prompt) - 1; i >= 0; i-- {
		n.order = slices.DeleteFunc(n.order, func(id uint64) bool { return id == prompt[i] })
		n.order = slices.Insert(n.order, 0, prompt[i])
	}
	n.order = n.order[:min(len(n.order), n.capacity)]
	return hits
}

// Random prompts that share, grow and return: hits, size and content equal the naive cache's after every one.
func TestPrefixCacheEqualsNaive(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		capacity := 1 + rnd.IntN(40)
		c, naive := NewPrefixCache(capacity), &naiveCache{capacity: capacity}
		for i := range 300 {
			prompt := append(ids(1, rnd.Uint64N(5)), ids(100*rnd.Uint64N(6), rnd.Uint64N(20))...)
			before := c.Len()
			if got, want := c.Match(prompt), c.Match(prompt); got != want || c.Len() != before {
				t.Fatalf("seed %d, prompt %d: Match changed the cache", seed, i)
			}
			if got, want := c.Admit(prompt), naive.admit(prompt); got != want {
				t.Fatalf("seed %d, prompt %d: %d hits, naive %d", seed, i, got, want)
			}
			if c.Len() != len(naive.order) || c.Len() > capacity {
				t.Fatalf("seed %d, prompt %d: %d blocks, naive %d, capacity %d", seed, i, c.Len(), len(naive.order), capacity)
			}
		}
		for _, id := range naive.order {
			if c.Match([]uint64{id}) != 1 {
				t.Fatalf("seed %d: block %d is missing at the end", seed, id)
			}
		}
	}
}

// More memory never gives fewer hits: LRU is a stack algorithm, and tail-first eviction must not break that.
func TestMoreCacheNeverHitsLess(t *testing.T) {
	for seed := range uint64(20) {
		var last int
		for _, capacity := range []int{4, 8, 16, 32, 64, 0} {
			rnd := rand.New(rand.NewPCG(seed, 2))
			c, hits := NewPrefixCache(capacity), 0
			for range 200 {
				hits += c.Admit(ids(1000*rnd.Uint64N(5), 1+rnd.Uint64N(30)))
			}
			if hits < last {
				t.Errorf("seed %d: %d hits with %d blocks, %d with fewer", seed, hits, capacity, last)
			}
			last = hits
		}
	}
}

// Admission of a conversation of 80k tokens to a cache that holds it and is full: what one turn of the demo costs.
func BenchmarkAdmit(b *testing.B) {
	c := NewPrefixCache(20_000)
	for i := range uint64(16) {
		c.Admit(ids(i<<32, 1250))
	}
	prompt := ids(3<<32, 1250)
	b.ReportAllocs()
	for b.Loop() {
		c.Admit(prompt)
	}
}
