package policy_test

import (
	"fmt"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// manyIDs returns n session ids.
func manyIDs(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("session-%d", i))
	}
	return ids
}

// sticky is a placement at 0.
func sticky(r *policy.Replicas, k policy.Key, leaving uint32) int {
	return policy.StickyLeastLoaded{}.Choose(r, policy.Query{Key: k, Leaving: leaving})
}

func TestStickyLeastLoaded(t *testing.T) {
	const draining, unhealthy, removed = policy.Draining, policy.Unhealthy, policy.Removed
	type replica struct {
		open, weight uint32
		last         uint64
		state        policy.State
		joining      bool
	}
	for _, c := range []struct {
		name       string
		replicas   []replica
		placements uint64
		leaving    uint32
		want       int
	}{
		{"fewest open", []replica{{open: 2}, {open: 1}, {open: 3}}, 9, 0, 1},
		{"per weight", []replica{{open: 3, weight: 1}, {open: 7, weight: 3}, {open: 5, weight: 2}}, 9, 0, 1},
		{"weights that a quotient would round to a tie", []replica{{open: 2, weight: 65534}, {open: 2, weight: 65535}}, 9, 0, 1},
		{"tie: least recently chosen", []replica{{last: 9}, {last: 7}, {last: 8}}, 9, 0, 1},
		{"tie: never chosen first", []replica{{last: 3}, {last: 0}, {last: 8}}, 9, 0, 1},
		{"load comes before recency", []replica{{open: 1, last: 1}, {open: 0, last: 9}}, 9, 0, 1},
		{"draining takes none", []replica{{state: draining}, {open: 9}}, 9, 0, 1},
		{"unhealthy takes none", []replica{{state: unhealthy}, {open: 9}}, 9, 0, 1},
		{"removed takes none", []replica{{state: removed}, {open: 9}}, 9, 0, 1},
		{"panic: all but removed", []replica{{state: removed}, {state: unhealthy, open: 2}, {state: draining, open: 1}}, 9, 0, 2},
		{"the session that leaves is not counted", []replica{{open: 3, last: 9}, {open: 3, last: 8}}, 9, 1, 0},
		{"leaving an empty replica counts as zero", []replica{{open: 0, last: 8}, {open: 0, last: 9}}, 9, 1, 0},
		{"a newcomer first", []replica{{open: 4, last: 8}, {open: 4, last: 9}, {joining: true}}, 9, 0, 2},
		{"a newcomer not twice in a row of three", []replica{{open: 4, last: 7}, {open: 4, last: 8}, {open: 1, last: 9, joining: true}}, 9, 0, 0},
		{"a newcomer every second of three", []replica{{open: 4, last: 7}, {open: 4, last: 9}, {open: 1, last: 8, joining: true}}, 9, 0, 2},
		{"a newcomer of two is not held back", []replica{{open: 4, last: 8}, {open: 1, last: 9, joining: true}}, 9, 0, 1},
		{"draining ones do not make a newcomer's share smaller", []replica{{open: 4, last: 8}, {state: draining}, {state: draining}, {open: 1, last: 9, joining: true}}, 9, 0, 3},
		{"when all are newcomers over their share, the least loaded", []replica{
			{joining: true, last: 9, open: 1, weight: 117}, {joining: true, last: 8, open: 1, weight: 57},
			{joining: true, last: 7, open: 1, weight: 38}, {joining: true, last: 6, open: 1, weight: 28}}, 9, 0, 0},
		{"removed alone", []replica{{state: removed}}, 9, 0, -1},
		{"empty pool", nil, 0, 0, -1},
	} {
		r := &policy.Replicas{Placements: c.placements}
		for i, x := range c.replicas {
			r.List = append(r.List, policy.Replica{
				ID: uint32(i + 1), Rank: uint64(i), Weight: max(x.weight, 1), State: x.state,
				Joining: x.joining, Open: x.open, LastChosen: x.last,
			})
		}
		if got := sticky(r, key("s1"), c.leaving); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestIdlePoolGivesOldHomes: in a pool that was never used the choice depends on
// the session and the addresses alone, and is even.
func TestIdlePoolGivesOldHomes(t *testing.T) {
	counts := map[string]int{}
	for _, id := range manyIDs(4000) {
		one, other := &policy.Replicas{}, &policy.Replicas{}
		one.Apply(members("a", "b", "c", "d"), 0, 0)
		other.Apply(members("d", "b", "a", "c"), 0, 0)
		home := one.List[sticky(one, key(id), 0)].Address
		if again := other.List[sticky(other, key(id), 0)].Address; again != home {
			t.Fatalf("%s: %s, and %s with the list in another order", id, home, again)
		}
		counts[home]++
	}
	for address, n := range counts {
		// Five standard deviations of a binomial with p = 1/4.
		if n < 1000-137 || n > 1000+137 {
			t.Errorf("%s is home to %d of 4000", address, n)
		}
	}
}

// TestEqualRanksFallBackToID: a collision of ranks must not make the choice
// depend on the order of comparison.
func TestEqualRanksFallBackToID(t *testing.T) {
	r := replicas(0, 0, 0)
	for i := range r.List {
		r.List[i].Rank = 1
	}
	if got := sticky(r, key("s1"), 0); got != 0 {
		t.Errorf("placed on %d", got)
	}
}
