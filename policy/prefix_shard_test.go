package policy

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// some returns n replicas of equal weight, ids from 1 on.
func some(n int) *Replicas {
	r := &Replicas{}
	var ms []Member
	for i := range n {
		ms = append(ms, Member{Address: fmt.Sprint("r", i), Weight: 1})
	}
	r.Apply(ms, 0, 0)
	return r
}

// prompt256 returns a prompt of one prefix.
func prompt256(n uint64) *Prompt { return promptOf(7, randomBytes(n, 256)) }

// TestPrefixShardBytes holds the layout: two versions may share a shard.
func TestPrefixShardBytes(t *testing.T) {
	a, b := &Prompt{count: 1, hashes: [MaxPrefixes]uint64{0x1122334455667788}}, &Prompt{count: 1, hashes: [MaxPrefixes]uint64{0xa1}}
	r := some(300)
	s := PrefixShard(nil).CopyTo(nil).Record(a, 0, 1, r, 9)
	s = s.Record(b, 0, 0x102, r, 9)
	for id := uint32(2); id <= 5; id++ {
		s = s.Record(b, 0, id, r, 9)
	}
	const want = "01" +
		"a100000000000000" + "01" + "05000000040000000300000002000000" +
		"8877665544332211" + "00" + "01000000000000000000000000000000"
	if got := hex.EncodeToString(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestPrefixShardAgainstModel plays random histories on a shard and on a list.
func TestPrefixShardAgainstModel(t *testing.T) {
	type entry struct {
		prompt uint64
		ids    []uint32
		wide   bool
	}
	prompts := map[uint64]*Prompt{}
	for n := range uint64(10) {
		prompts[n] = prompt256(n)
	}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		r, limit := some(7), 1+rnd.IntN(12)
		var s PrefixShard
		var model []entry
		for step := range 300 {
			n, id := rnd.Uint64N(10), uint32(1+rnd.IntN(7))
			if rnd.IntN(8) == 0 {
				r.List[rnd.IntN(7)].State = State(rnd.IntN(2)) * Removed
			}
			// What the model says.
			e := entry{prompt: n, ids: []uint32{id}}
			if i := slices.IndexFunc(model, func(e entry) bool { return e.prompt == n }); i >= 0 {
				e.wide = model[i].wide
				for _, h := range model[i].ids {
					if h != id && r.List[h-1].State != Removed {
						e.ids = append(e.ids, h)
					}
				}
				model = slices.Delete(model, i, i+1)
			}
			e.wide = (e.wide || len(e.ids) > 4) && len(e.ids) > 1
			e.ids = e.ids[:min(len(e.ids), 4)]
			model = slices.Insert(model, 0, e)
			model = model[:min(len(model), limit)]

			s = s.CopyTo(nil).Record(prompts[n], 0, id, r, limit)
			if !s.Valid() || s.Len() != len(model) {
				t.Fatalf("seed %d, step %d: %d entries, want %d", seed, step, s.Len(), len(model))
			}
			for i, e := range model {
				m := decodeHolders(s.entry(i))
				holders := slices.DeleteFunc(slices.Clone(m.Holders[:]), func(id uint32) bool { return id == 0 })
				if s.find(prompts[e.prompt].hashes[0]) != i || m.Wide != e.wide || !slices.Equal(holders, e.ids) {
					t.Fatalf("seed %d, step %d: entry %d is %+v, want %+v", seed, step, i, m, e)
				}
			}
		}
	}
}

func TestPrefixMatch(t *testing.T) {
	r := some(6)
	p := promptOf(7, randomBytes(1, 256), randomBytes(2, 144))
	empty := PrefixShard(nil)
	if _, ok := empty.Match(p, 0, r, 0); ok {
		t.Error("an empty shard matches")
	}
	s := empty.CopyTo(nil).Record(p, 0, 2, r, 9)
	s = s.Record(p, 0, 3, r, 9)
	m, ok := s.Match(p, 0, r, 0)
	if want := (PrefixMatch{Holders: [4]uint32{3, 2}, Share: 256.0 / 400}); !ok || m != want {
		t.Errorf("got %+v %v", m, ok)
	}
	if _, ok := s.Match(p, 1, r, 0); ok {
		t.Error("another prefix matches")
	}
	if _, ok := s.Match(promptOf(8, randomBytes(1, 256)), 0, r, 0); ok {
		t.Error("another seed matches")
	}
	// One holder that may take a session is enough, none is not.
	r.List[1].State, r.List[2].State = Draining, Unhealthy
	if _, ok := s.Match(p, 0, r, 0); ok {
		t.Error("no holder may take a session")
	}
	r.List[1].State, r.List[1].Health = Active, Health{Cooldown: 5, Until: 5}
	if _, ok := s.Match(p, 0, r, 4); ok {
		t.Error("the holder cools down")
	}
	if _, ok := s.Match(p, 0, r, 5); !ok {
		t.Error("the holder's trial is due")
	}
	for id := uint32(1); id <= 6; id++ {
		s = s.Record(p, 0, id, r, 9)
	}
	if m, ok := s.Match(p, 0, r, 0); !ok || !m.Wide {
		t.Errorf("six holders: %+v %v", m, ok)
	}
	// It may be that one of the others may take one.
	for i := range 4 {
		r.List[2+i].State = Draining
	}
	if m, ok := s.Match(p, 0, r, 0); !ok || !m.Wide {
		t.Errorf("six holders, the latest four draining: %+v %v", m, ok)
	}
}

// TestKnowsSavesWritesOnly: where a shard knows, Record would change the order at
// most; where the replica is not the latest holder, or one has gone, it writes.
func TestKnowsSavesWritesOnly(t *testing.T) {
	r := some(6)
	p, q, x := prompt256(1), prompt256(2), prompt256(3)
	s := PrefixShard(nil).CopyTo(nil).Record(p, 0, 1, r, 9)
	s = s.Record(p, 0, 2, r, 9)
	for _, c := range []struct {
		prompt *Prompt
		id     uint32
		want   bool
	}{{p, 2, true}, {p, 1, false}, {p, 3, false}, {q, 2, false}} {
		if got := s.Knows(c.prompt, 0, c.id, r); got != c.want {
			t.Errorf("replica %d: %v", c.id, got)
		}
	}
	s = s.Record(q, 0, 2, r, 9)
	if !s.Knows(p, 0, 2, r) {
		t.Error("second of two")
	}
	if s = s.Record(x, 0, 2, r, 9); s.Knows(p, 0, 2, r) {
		t.Error("last of three")
	}
	if !s.Knows(x, 0, 2, r) || PrefixShard("junk").Knows(x, 0, 2, r) {
		t.Error("the first, and nonsense")
	}
	s = s.Record(p, 0, 2, r, 9)
	if r.List[0].State = Removed; s.Knows(p, 0, 2, r) {
		t.Error("a holder has gone")
	}
}

// FuzzPrefixShard: foreign bytes may match by chance, and nothing worse.
func FuzzPrefixShard(f *testing.F) {
	r := some(3)
	p := promptOf(7, randomBytes(1, 400))
	f.Add([]byte{}, uint32(1), 3)
	f.Add([]byte{prefixSchema}, uint32(1), 1)
	f.Add([]byte{9, 1, 2}, uint32(0), 2)
	f.Add([]byte(PrefixShard(nil).CopyTo(nil).Record(p, 0, 2, r, 9)), uint32(2), 1)
	f.Add(make([]byte, 1+prefixEntrySize*40), uint32(2), 5)
	f.Fuzz(func(t *testing.T, b []byte, id uint32, entries int) {
		entries = 1 + entries&63
		s := PrefixShard(b)
		for i := range p.Prefixes() {
			s.Match(p, i, r, 0)
			s.Knows(p, i, id, r)
			c := s.CopyTo(nil)
			if before := c.Len(); !c.Valid() || s.Valid() && before != s.Len() {
				t.Fatalf("copy of %d entries has %d", s.Len(), before)
			}
			c = c.Record(p, i, id, r, entries)
			if !c.Valid() || c.Len() > entries || c.find(p.hashes[i]) != 0 {
				t.Fatalf("%d entries of %d, found at %d", c.Len(), entries, c.find(p.hashes[i]))
			}
		}
	})
}
