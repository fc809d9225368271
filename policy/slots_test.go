package policy_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// hosts are n members as busy names them.
func hosts(n int) (ms []policy.Member) {
	for i := range n {
		ms = append(ms, policy.Member{Address: fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1), Weight: 1})
	}
	return ms
}

func poolOf(ms []policy.Member) *policy.Replicas {
	r := &policy.Replicas{}
	r.Apply(ms, 0, 0)
	return r
}

// sparesOf are the addresses of the session's spares.
func sparesOf(s *policy.Slots, r *policy.Replicas, id string, primary, n int) (as []string) {
	for _, i := range s.Spares(nil, r, key(id), primary, n, 0) {
		as = append(as, r.List[i].Address)
	}
	return as
}

// Few replicas are spares in a rendezvous order, which sessions of a class share.
func TestSlotsOfFewReplicas(t *testing.T) {
	for n := range policy.FewReplicas + 1 {
		r, slots := poolOf(hosts(n)), &policy.Slots{}
		for i, id := range manyIDs(50) {
			k := key(id)
			want := policy.Spares(nil, r, policy.Key{Rank: uint64(k.SpareClass()) << 56}, i%17, 3, 0)
			if got := slots.Spares(nil, r, k, i%17, 3, 0); !slices.Equal(got, want) {
				t.Fatalf("%d replicas, %s: %v, want the rendezvous order %v", n, id, got, want)
			}
		}
	}
}

// The sessions of one of few replicas that dies spread over all others: each gets what
// it does of 256 draws.
func TestSlotsOfFewReplicasSpread(t *testing.T) {
	for n := 3; n <= policy.FewReplicas; n++ {
		r, slots := poolOf(hosts(n)), &policy.Slots{}
		for dead := range n {
			counts := map[string]int{}
			for class := range uint64(policy.SpareClasses) {
				i := slots.Spares(nil, r, policy.Key{Rank: class << 56}, dead, 1, 0)[0]
				counts[r.List[i].Address]++
			}
			if x := chiSquare(counts, n-1); x > 5 {
				t.Errorf("%d replicas, after %d: chi-square is %.1f standard deviations off: %v", n, dead, x, counts)
			}
		}
	}
}

// Whatever the pool, spares are as many as there can be, different, not the primary,
// and may take sessions; one Slots serves pools in turn.
func TestSlotsAreSpares(t *testing.T) {
	var slots policy.Slots
	for _, n := range []int{17, 18, 40, 64, 85, 1024, 40, 1} {
		for _, every := range []int{1, 2, 3, 16, 1000} { // one in so many takes sessions
			r := poolOf(hosts(n))
			states := []policy.State{policy.Draining, policy.Unhealthy, policy.Removed}
			for i := range r.List {
				if i%every != 0 {
					r.List[i].State = states[i%len(states)]
				}
			}
			for i, id := range manyIDs(200) {
				primary := i*7%(n+1) - 1
				got := slots.Spares([]int{-7}, r, key(id), primary, 5, 0)
				want := policy.Spares([]int{-7}, r, key(id), primary, 5, 0) // as many, and of those
				all := policy.Spares(nil, r, key(id), primary, policy.MaxSpares, 0)
				if len(got) != len(want) || got[0] != -7 {
					t.Fatalf("%d replicas, one in %d, %s: %v, want as many as %v", n, every, id, got, want)
				}
				for j, at := range got[1:] {
					if at == primary || r.List[at].State != policy.Active || slices.Contains(got[1:j+1], at) {
						t.Fatalf("%d replicas, one in %d, %s: %v after %d", n, every, id, got[1:], primary)
					}
				}
				if len(all) < 5 && !slices.Equal(got, want) {
					t.Fatalf("%d replicas, one in %d, %s: %v, want %v", n, every, id, got, want)
				}
			}
		}
	}
}

// With panic, everybody is a spare who is a member.
func TestSlotsInPanic(t *testing.T) {
	r, slots := poolOf(hosts(40)), &policy.Slots{}
	for i := range r.List {
		r.List[i].State = policy.Unhealthy
	}
	r.List[3].State = policy.Removed
	for _, id := range manyIDs(100) {
		if got := slots.Spares(nil, r, key(id), 0, 8, 0); len(got) != 8 || slices.Contains(got, 3) {
			t.Fatalf("%s: %v", id, got)
		}
	}
}

// Fewer spares are the head of more, and neither the order of the list nor the
// replicas' history matters: gateways agree.
func TestSlotsOrder(t *testing.T) {
	ms := hosts(100)
	turned := slices.Clone(ms)
	slices.Reverse(turned)
	r, other, one, two := poolOf(ms), poolOf(hosts(200)), &policy.Slots{}, &policy.Slots{}
	sparesOf(two, other, "s", 0, 2) // a table of a larger pool, to be left behind
	other.Apply(turned, 0, 0)
	other.Forget(1, 0)
	for _, id := range manyIDs(500) {
		all := sparesOf(one, r, id, -1, 8)
		for n := range all {
			if got := sparesOf(one, r, id, -1, n); !slices.Equal(got, all[:n]) {
				t.Fatalf("%s: %d of %v are %v", id, n, all, got)
			}
		}
		if got := sparesOf(two, other, id, -1, 8); !slices.Equal(got, all) {
			t.Fatalf("%s: %v, and %v in another order", id, all, got)
		}
	}
}

// chiSquare is the deviation of the counts of n bins from even ones, in standard
// deviations of what chance makes.
func chiSquare(counts map[string]int, n int) float64 {
	sum := 0
	for _, c := range counts {
		sum += c
	}
	mean, x := float64(sum)/float64(n), 0.0
	for _, c := range counts {
		x += (float64(c) - mean) * (float64(c) - mean) / mean
	}
	x += float64(n-len(counts)) * mean
	return (x - float64(n-1)) / math.Sqrt(2*float64(n-1))
}

// The sessions of a replica that dies spread over all others as evenly as draws do,
// and so do those of the next that dies.
func TestSlotsSpreadEvenly(t *testing.T) {
	for _, n := range []int{17, 64, 100, 1000} {
		r, slots := poolOf(hosts(n)), &policy.Slots{}
		for _, dead := range []int{0, n / 2, n - 1} {
			first, second := map[string]int{}, map[string]int{}
			for _, id := range manyIDs(50 * n) {
				as := sparesOf(slots, r, id, dead, 2)
				first[as[0]]++
				second[as[1]]++
			}
			for place, counts := range []map[string]int{first, second} {
				if x := chiSquare(counts, n-1); math.Abs(x) > 4 {
					t.Errorf("%d replicas, after %d, spare %d: chi-square is %.1f standard deviations off", n, dead, place+1, x)
				}
			}
		}
	}
}

// A spare that cannot take sessions costs only its own: others keep theirs. One
// that leaves the list, or joins it, may move another into its slot, or out of it.
func TestSlotsMoveFew(t *testing.T) {
	const n = 100
	ids := manyIDs(20_000)
	first := func(r *policy.Replicas) map[string]string {
		slots, at := &policy.Slots{}, map[string]string{}
		for _, id := range ids {
			at[id] = sparesOf(slots, r, id, -1, 1)[0]
		}
		return at
	}
	r := poolOf(hosts(n))
	before := first(r)
	for _, gone := range []int{0, 42, n - 1} {
		address := r.List[gone].Address
		r.List[gone].State = policy.Draining
		after := first(r)
		r.List[gone].State = policy.Active
		shorter := first(poolOf(slices.Delete(hosts(n), gone, gone+1)))
		had, others := 0, 0
		for _, id := range ids {
			switch {
			case before[id] == address:
				had++
			case before[id] != after[id]:
				t.Fatalf("%s drains: %s goes from %s to %s", address, id, before[id], after[id])
			case before[id] != shorter[id]:
				others++
			}
		}
		if had < len(ids)/n/2 || had > len(ids)/n*2 || others > 2*had {
			t.Errorf("%s goes, the spare of %d sessions: %d others have a new one", address, had, others)
		}
	}
}

func TestSlotsAllocateNothing(t *testing.T) {
	r, dst, slots := busy(64), make([]int, 0, policy.MaxSpares), &policy.Slots{}
	k := key("s1")
	if n := testing.AllocsPerRun(100, func() { slots.Spares(dst, r, k, 3, 2, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	other := poolOf(hosts(60))
	if n := testing.AllocsPerRun(100, func() {
		slots.Spares(dst, r, k, 3, 2, 0)
		slots.Spares(dst, other, k, 3, 2, 0)
	}); n != 0 {
		t.Errorf("%v allocations for a table made anew", n)
	}
}
