package policy_test

import (
	"fmt"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// id is as long as the ids that clients send: a UUID.
var id = []byte("018f3c5e-7d2a-7b31-9c44-5a1f0e6b2d90")

// busy returns n replicas with about eight open sessions each.
func busy(n int) *policy.Replicas {
	r := &policy.Replicas{}
	var ms []policy.Member
	for i := range n {
		ms = append(ms, policy.Member{Address: fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1), Weight: 1})
	}
	r.Apply(ms, 0, 0)
	for _, id := range manyIDs(8*n + n/2) {
		r.Reserve(sticky(r, key(id), 0), 0)
	}
	return r
}

// pinnedTurn is what the policy does for a turn of a session with a pin: key,
// verdict, the replica's position and two spares. dst has room for the spares.
func pinnedTurn(r *policy.Replicas, slots *policy.Slots, pin policy.Pin, dst []int) (policy.Reason, []int) {
	k := policy.NewKey(policy.Secret{1}, id)
	reason := policy.Judge(pin, r, pin.LastSeen+1000, 7_200_000)
	return reason, slots.Spares(dst, r, k, r.Index(pin.Replica), 2, 0)
}

// placement is what the policy does for the first turn of a session, which then
// gives the place back so that every round finds the same loads.
func placement(r *policy.Replicas) int {
	k := policy.NewKey(policy.Secret{1}, id)
	i := sticky(r, k, 0)
	r.Reserve(i, 0)
	r.Return(r.List[i].ID, 1)
	return i
}

// BenchmarkPinnedTurn measures pinnedTurn; the store's work is not in it.
func BenchmarkPinnedTurn(b *testing.B) {
	for _, n := range []int{4, 64, 1024} {
		b.Run(fmt.Sprintf("policy=sticky_least_loaded/replicas=%d", n), func(b *testing.B) {
			r, slots, dst := busy(n), &policy.Slots{}, make([]int, 0, policy.MaxSpares)
			pin := policy.Pin{Replica: r.List[n/2].ID}
			b.ReportAllocs()
			for b.Loop() {
				pinnedTurn(r, slots, pin, dst)
			}
		})
	}
}

// BenchmarkPlacement measures placement; the store's work is not in it.
func BenchmarkPlacement(b *testing.B) {
	for _, n := range []int{4, 64, 1024} {
		b.Run(fmt.Sprintf("policy=sticky_least_loaded/replicas=%d", n), func(b *testing.B) {
			r := busy(n)
			b.ReportAllocs()
			for b.Loop() {
				placement(r)
			}
		})
	}
}

// query is one that has something for every policy.
func query(r *policy.Replicas) policy.Query {
	q := policy.Query{
		Key:    policy.NewKey(policy.Secret{1}, id),
		Random: 0x9e3779b97f4a7c15,
		Prefix: policy.PrefixMatch{Holders: [policy.MaxHolders]uint32{r.List[len(r.List)/2].ID, 1}, Share: 1},
	}
	for i := range r.List {
		q.InFlight = append(q.InFlight, uint32(i%7))
		q.Chosen = append(q.Chosen, uint64(i*i%31))
	}
	return q
}

// BenchmarkChoose measures one choice of each policy.
func BenchmarkChoose(b *testing.B) {
	for _, name := range policy.Names() {
		b.Run("policy="+name+"/replicas=64", func(b *testing.B) {
			p, err := policy.New(name, usual)
			if err != nil {
				b.Fatal(err)
			}
			r := busy(64)
			q := query(r)
			b.ReportAllocs()
			for b.Loop() {
				p.Choose(r, q)
			}
		})
	}
}

// BenchmarkNewKey measures the two hashes of a session id.
func BenchmarkNewKey(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		policy.NewKey(policy.Secret{1}, id)
	}
}

// TestNoAllocation: garbage on the path of every turn is what stalls a worker.
func TestNoAllocation(t *testing.T) {
	r, slots, dst := busy(64), &policy.Slots{}, make([]int, 0, policy.MaxSpares)
	pin := policy.Pin{Replica: r.List[32].ID}
	for name, decide := range map[string]func(){
		"pinned turn": func() {
			if reason, spares := pinnedTurn(r, slots, pin, dst); reason != policy.Pinned || len(spares) != 2 {
				t.Fatalf("%v with spares %v", reason, spares)
			}
		},
		"placement": func() { placement(r) },
	} {
		if n := testing.AllocsPerRun(100, decide); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	var turns policy.Rotation
	q := query(r)
	for _, name := range policy.Names() {
		p, _ := policy.New(name, usual)
		if n := testing.AllocsPerRun(100, func() {
			q.Chosen = turns.Of(r)
			turns.Chose(r.List[p.Choose(r, q)].ID)
			p.Unpinned(r, q)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	now := int64(0)
	if n := testing.AllocsPerRun(100, func() {
		now++
		for range 3 {
			r.Fail(1, now, now, rule)
		}
		now += 100
		r.Probe(0, now)
		r.Succeed(1, now)
	}); n != 0 {
		t.Errorf("health: %v allocations", n)
	}
}

// TestPoolAllocatesNothing for a turn of any kind, once it has its maps: replays
// drive millions of them.
func TestPoolAllocatesNothing(t *testing.T) {
	for _, name := range policy.Names() {
		p := pool("a", "b", "c", "d")
		p.Policy, _ = policy.New(name, usual)
		p.Prefixes = policy.NewPrefixIndex(64)
		k, prompt := key("s1"), promptOf(prompt(123))
		round := func() {
			p.Turn(k, prompt, 0)
			p.Turn(k, prompt, 0)
			p.Unrecorded(policy.Key{}, policy.Keyless, 0)
			p.Finish(k)
		}
		for range 20 {
			round()
		}
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
