package plugin

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// cacheAware is what the tests' stores place by.
var cacheAware = policy.CacheAware{Threshold: 0.3, BalanceAbs: 64, BalanceRel: 1.5}

// openCacheAware is a worker's store under cache_aware.
func openCacheAware(t testing.TB, data sharedData, members []policy.Member, maxPrefixes int) *store {
	t.Helper()
	s := newStore(data, PoolConfig{Name: "p", Members: members}, testSession(100_000))
	s.policy = cacheAware
	s.prefixes = newPrefixes(data, &s.stats, "p", maxPrefixes)
	if !s.adopt(0, 0) {
		t.Fatal("shared data does not answer")
	}
	return s
}

// part is n bytes that are drawn by seed.
func part(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 3))
	b := binary.LittleEndian.AppendUint64(nil, seed)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}

// promptWith is the prompt of the parts.
func promptWith(parts ...[]byte) *policy.Prompt {
	p := &policy.Prompt{}
	p.Reset(7)
	for _, b := range parts {
		p.Write(b)
	}
	return p
}

// What three workers decide in turn over shared data is what the pure policy
// decides alone, through releases, changes of membership and an index that is too
// small for the prompts.
func TestWorkersShareOneIndex(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		data := newMemoryData()
		most := []int{1, 20, 200, 65536}[seed%4]
		var stores [3]*store
		for w := range stores {
			stores[w] = openCacheAware(t, data, addresses(4), most)
		}
		pool := &policy.Pool{
			Policy: cacheAware, Prefixes: policy.NewPrefixIndex(most),
			Timeout: testSession(1).IdleTimeout.Milliseconds(), MaxSessions: 100_000,
		}
		pool.Apply(addresses(4), 0, 0)
		for step := range 600 {
			now := int64(1000 + step)
			s := stores[rng.IntN(len(stores))]
			key := keyOf(fmt.Sprint(rng.IntN(100)))
			switch rng.IntN(12) {
			case 0:
				s.finish(key.Hash, now)
				pool.Finish(key)
			case 1:
				if rng.IntN(8) > 0 {
					break
				}
				members := addresses(3 + rng.IntN(3))
				members[rng.IntN(3)].State = policy.State(rng.IntN(3))
				pool.Apply(members, now, 0)
				for _, s := range stores {
					s.members, s.sum = members, sumOf(members, s.timeout)
					s.adopt(now, 0)
				}
			default:
				prompt := promptWith(part(uint64(rng.IntN(4)), 280+rng.IntN(6)*500), part(uint64(10+rng.IntN(20)), rng.IntN(3000)))
				got, ok := s.turn(key, prompt, now)
				want := pool.Turn(key, prompt, now)
				if want.Panic = false; !ok || got != want {
					t.Fatalf("seed %d, step %d: %+v, ok %v, want %+v", seed, step, got, ok, want)
				}
			}
		}
		mustBalance(t, data, stores[0], fmt.Sprint("seed ", seed))
		entries, _ := indexSize(data)
		if want := pool.Prefixes.Entries(); entries != want {
			t.Errorf("seed %d: %d entries, the pure index has %d", seed, entries, want)
		}
		for _, s := range stores {
			if s.stats.faults != [numFaults]uint64{} {
				t.Errorf("seed %d: faults %v", seed, s.stats.faults)
			}
		}
	}
}

// indexSize returns the entries of the index of pool p, and its bytes without keys.
func indexSize(data *memoryData) (entries, size int) {
	for key, v := range data.values {
		if strings.HasPrefix(key, keyRoot+"p/p/") {
			entries += policy.PrefixShard(v).Len()
			size += len(v)
		}
	}
	return entries, size
}

// However the workers' accesses interleave, and if some of them die, counts stay
// those of the pins, what was placed last is found, and no shard is foreign.
func TestRacingPromptsAreRecorded(t *testing.T) {
	for seed := range uint64(300) {
		data := newMemoryData()
		var stores []*store
		var workers []func()
		for w := range 3 {
			s := openCacheAware(t, data, addresses(3), 40)
			stores = append(stores, s)
			workers = append(workers, func() {
				for i := range 6 {
					key, prompt := keyOf(fmt.Sprint(w, i)), promptWith(part(1, 1000), part(uint64(10+w), 300))
					if d, ok := s.turn(key, prompt, 1000); !ok || d.Reason != policy.Placed {
						t.Errorf("seed %d: %+v, ok %v", seed, d, ok)
					}
				}
			})
		}
		var kill func(*rand.Rand) bool
		if seed%3 == 0 {
			kill = func(r *rand.Rand) bool { return r.IntN(100) == 0 }
		}
		interleave(data, seed, kill, workers...)
		for _, s := range stores {
			if s.stats.faults != [numFaults]uint64{} {
				t.Errorf("seed %d: faults %v", seed, s.stats.faults)
			}
		}
		s := openCacheAware(t, data, addresses(3), 40)
		if kill == nil {
			mustBalance(t, data, s, fmt.Sprint("seed ", seed))
		}
		for key, v := range data.values {
			if strings.HasPrefix(key, keyRoot+"p/p/") && !policy.PrefixShard(v).Valid() {
				t.Errorf("seed %d: %s holds % x", seed, key, v)
			}
		}
		d, _ := s.turn(keyOf("last"), promptWith(part(99, 2000)), 1000)
		if m := s.prefixes.lookup(promptWith(part(99, 2000)), &s.view.Replicas, 1000); m.Holders[0] != d.Replica || m.Share < 0.8 {
			t.Fatalf("seed %d: placed on %d, known %+v", seed, d.Replica, m)
		}
	}
}

// calls counts accesses to shared data.
type calls struct {
	*memoryData
	reads, writes int
}

func (c *calls) Get(key string) ([]byte, uint32, error) {
	c.reads++
	return c.memoryData.Get(key)
}

func (c *calls) Set(key string, value []byte, cas uint32) error {
	c.writes++
	return c.memoryData.Set(key, value, cas)
}

// A first turn reads each shard of its prompt once, and writes once what it adds. A
// pinned turn reads its pin and nothing else.
func TestFirstTurnsReadAndWriteEachShardOnce(t *testing.T) {
	data := &calls{memoryData: newMemoryData()}
	s := openCacheAware(t, data, addresses(4), 65536)
	turn := func(id string, prompt *policy.Prompt) (reads, writes int) {
		data.reads, data.writes = 0, 0
		if _, ok := s.turn(keyOf(id), prompt, 1000); !ok {
			t.Fatal("not recorded")
		}
		return data.reads, data.writes
	}
	// Besides the prefixes: the pin, and the record twice; both are written.
	for _, tt := range []struct {
		what          string
		id            string
		prompt        *policy.Prompt
		reads, writes int
	}{
		{"64 KB, unknown", "a", promptWith(part(1, 64<<10)), 27 + 3, 27 + 2},
		{"pinned", "a", promptWith(part(1, 64<<10)), 1, 0},
		{"64 KB, known", "b", promptWith(part(1, 64<<10)), 27 + 3, 2},
		{"1 KB, unknown", "c", promptWith(part(2, 1<<10)), 8 + 3, 8 + 2},
		{"a word", "d", promptWith([]byte("hello")), 3, 2},
		{"nothing known", "e", nil, 2, 2},
	} {
		if r, w := turn(tt.id, tt.prompt); r != tt.reads || w != tt.writes {
			t.Errorf("%s: %d reads and %d writes, want %d and %d", tt.what, r, w, tt.reads, tt.writes)
		}
	}
}

// Entries of a replica that was removed count for nothing, also when its address
// comes back, and go as their prefixes are sent again.
func TestARemovedReplicaLeavesTheIndex(t *testing.T) {
	data := newMemoryData()
	configure := func(n int) *store { return openCacheAware(t, data, addresses(n), 65536) }
	prompt := promptWith(part(1, 4000))
	gone, _ := configure(1).turn(keyOf("a"), prompt, 1000)
	s := openCacheAware(t, data, addresses(3)[1:], 65536)
	second, _ := s.turn(keyOf("b"), prompt, 1000)
	s = configure(3)
	if d, _ := s.turn(keyOf("c"), prompt, 1000); d.Replica != second.Replica {
		t.Errorf("on %d, the prompt is known on %d only", d.Replica, second.Replica)
	}
	for key, v := range data.values {
		if !strings.HasPrefix(key, keyRoot+"p/p/") {
			continue
		}
		for b := v[1:]; len(b) > 0; b = b[25:] {
			for h := b[9:25]; len(h) > 0; h = h[4:] {
				if binary.LittleEndian.Uint32(h) == gone.Replica {
					t.Errorf("%s still names replica %d", key, gone.Replica)
				}
			}
		}
	}
}

// A change of max_prefixes keeps what is still found where it was, harms nothing,
// and holds the new bound.
func TestMaxPrefixesMayChange(t *testing.T) {
	data := newMemoryData()
	fill := func(most int, from uint64) {
		s := openCacheAware(t, data, addresses(3), most)
		for i := range uint64(2000) {
			s.turn(keyOf(fmt.Sprint(from+i)), promptWith(part(from+i, 2000)), 1000)
		}
		if s.stats.faults != [numFaults]uint64{} {
			t.Errorf("at %d: faults %v", most, s.stats.faults)
		}
	}
	fill(4096, 0)
	before, _ := indexSize(data)
	fill(1024, 10_000)
	after := 0
	for i := range policy.NewPrefixLayout(1024).Shards {
		after += policy.PrefixShard(data.values[fmt.Sprintf(keyRoot+"p/p/%05x", i)]).Len()
	}
	if before > 4096 || before < 4000 || after > 1024 || after < 1000 {
		t.Errorf("%d entries, then %d", before, after)
	}
}

// A first turn makes no garbage either once its buffers have grown.
func TestAFirstTurnWithAPromptAllocatesNothing(t *testing.T) {
	s := openCacheAware(t, lentData{newMemoryData()}, addresses(64), 1024)
	text := part(1, 32<<10)
	var p policy.Prompt
	n := uint64(0)
	round := func() {
		n++
		binary.LittleEndian.PutUint64(text, n)
		p.Reset(7)
		p.Write(text)
		s.prefixes.lookup(&p, &s.view.Replicas, 1000)
		s.prefixes.record(&p, uint32(1+n%64), &s.view.Replicas)
	}
	for range 200 {
		round()
	}
	// memoryData copies the key and the value of each of 24 writes.
	if got := testing.AllocsPerRun(100, round); got > 48 {
		t.Errorf("%v allocations", got)
	}
}
