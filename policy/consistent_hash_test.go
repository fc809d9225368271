package policy_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// homes returns the address that each of n sessions has under an unbounded hash.
func homes(r *policy.Replicas, n int) map[string]string {
	at := map[string]string{}
	for _, id := range manyIDs(n) {
		i := policy.ConsistentHash{}.Choose(r, policy.Query{Key: key(id)})
		at[id] = r.List[i].Address
	}
	return at
}

// TestClaimHashMovesOneInN: "adding one replica to n moves about 1/(n+1) of the
// keys", all of them to the new one; taking it away moves them back; a shuffled
// list moves none; a replaced address moves its own sessions, and to the new
// address what comes first there (vllm-project/production-stack#8).
func TestClaimHashMovesOneInN(t *testing.T) {
	const n = 1000
	four, five, shuffled, replaced := &policy.Replicas{}, &policy.Replicas{}, &policy.Replicas{}, &policy.Replicas{}
	four.Apply(members("a", "b", "c", "d"), 0, 0)
	five.Apply(members("a", "b", "c", "d", "e"), 0, 0)
	shuffled.Apply(members("d", "b", "e", "a", "c"), 0, 0)
	replaced.Apply(members("x", "b", "c", "d"), 0, 0)
	at4, at5, other, atx := homes(four, n), homes(five, n), homes(shuffled, n), homes(replaced, n)
	moved, lost, gained := 0, 0, 0
	for id, home := range at4 {
		if at5[id] != home {
			moved++
			if at5[id] != "e" {
				t.Errorf("%s went from %s to %s though e came", id, home, at5[id])
			}
		}
		if at5[id] != other[id] {
			t.Errorf("%s moved from %s to %s in a shuffled list", id, at5[id], other[id])
		}
		switch {
		case home == "a":
			lost++
		case atx[id] == "x":
			gained++
		case atx[id] != home:
			t.Errorf("%s went from %s to %s though a became x", id, home, atx[id])
		}
	}
	// Five standard deviations of binomials with p = 1/5 and 1/4, and 3/16.
	for name, c := range map[string][3]int{"moved": {moved, 200, 64}, "lost": {lost, 250, 69}, "gained": {gained, 188, 62}} {
		if c[0] < c[1]-c[2] || c[0] > c[1]+c[2] {
			t.Errorf("%d %s, want about %d", c[0], name, c[1])
		}
	}
}

// TestClaimADeadReplicasSessionsSpread over all others and not to its neighbour.
func TestClaimADeadReplicasSessionsSpread(t *testing.T) {
	r := &policy.Replicas{}
	r.Apply(members("a", "b", "c", "d"), 0, 0)
	before := homes(r, 4000)
	r.List[1].State = policy.Unhealthy
	went := map[string]int{}
	for id, home := range homes(r, 4000) {
		if before[id] == "b" {
			went[home]++
		} else if before[id] != home {
			t.Errorf("%s went from %s to %s", id, before[id], home)
		}
	}
	for _, home := range []string{"a", "c", "d"} {
		// Five standard deviations around a third of a thousand.
		if n := went[home]; n < 333-75 || n > 333+75 {
			t.Errorf("%s took %d of them: %v", home, n, went)
		}
	}
}

// TestClaimHashFollowsWeights: a replica is first for a share of sessions that is
// its share of the weight, and a change of one weight moves sessions from or to
// that replica only.
func TestClaimHashFollowsWeights(t *testing.T) {
	r := &policy.Replicas{}
	ms := members("a", "b", "c")
	ms[0].Weight, ms[1].Weight = 3, 2
	r.Apply(ms, 0, 0)
	before, count := homes(r, 6000), map[string]int{}
	for _, home := range before {
		count[home]++
	}
	for home, want := range map[string]int{"a": 3000, "b": 2000, "c": 1000} {
		if off := math.Abs(float64(count[home] - want)); off > 5*math.Sqrt(float64(want)) {
			t.Errorf("%s has %d, want about %d", home, count[home], want)
		}
	}
	ms[1].Weight = 5
	r.Apply(ms, 0, 0)
	for id, home := range homes(r, 6000) {
		if home != before[id] && home != "b" {
			t.Fatalf("%s went from %s to %s though b grew", id, before[id], home)
		}
	}
}

// TestClaimBound: "no replica takes a session beyond c times its fair share",
// at every moment, and those within the bound keep the hash's first choice.
func TestClaimBound(t *testing.T) {
	for _, c := range []float64{1, 1.25, 2} {
		for _, weights := range [][]uint32{{1, 1, 1, 1}, {3, 2, 1, 1}} {
			r := &policy.Replicas{}
			sum := 0.0
			for i, w := range weights {
				r.Apply(append(membersOf(r), policy.Member{Address: fmt.Sprint("r", i), Weight: w}), 0, 0)
				sum += float64(w)
			}
			first := 0
			for n, id := range manyIDs(1000) {
				q := policy.Query{Key: key(id)}
				i := policy.ConsistentHash{LoadFactor: c}.Choose(r, q)
				if (policy.ConsistentHash{}).Choose(r, q) == i {
					first++
				}
				r.Reserve(i, 0)
				if most := math.Ceil(c * float64(n+1) * float64(weights[i]) / sum); float64(r.List[i].Open) > most {
					t.Fatalf("c=%v weights %v: after %d replica %d has %d, the bound is %v", c, weights, n+1, i, r.List[i].Open, most)
				}
			}
			if least := map[float64]int{1: 600, 1.25: 950, 2: 990}[c]; first < least {
				t.Errorf("c=%v weights %v: only %d went to the first of their order", c, weights, first)
			}
		}
	}
}

// membersOf returns the members that a membership has.
func membersOf(r *policy.Replicas) (ms []policy.Member) {
	for _, c := range r.List {
		ms = append(ms, policy.Member{Address: c.Address, Weight: c.Weight})
	}
	return ms
}

// TestConsistentHash: the order of the session is that of the list.
func TestConsistentHash(t *testing.T) {
	for _, c := range []struct {
		name    string
		factor  float64
		open    []uint32
		states  []policy.State
		leaving uint32
		want    int
	}{
		{"idle", 1.25, []uint32{0, 0, 0, 0}, nil, 0, 0},
		{"unbounded, however loaded", 0, []uint32{99, 0, 0, 0}, nil, 0, 0},
		{"at the bound", 1.25, []uint32{3, 2, 1, 1}, nil, 0, 1},
		{"just under it", 1.25, []uint32{2, 2, 2, 1}, nil, 0, 0},
		{"two over the bound", 1, []uint32{3, 3, 1, 1}, nil, 0, 2},
		{"without the session that leaves", 1.25, []uint32{3, 2, 1, 1}, nil, 1, 0},
		{"the first of the order cannot serve", 1.25, []uint32{0, 0, 0, 0}, []policy.State{policy.Unhealthy}, 0, 1},
		{"what cannot serve has no share", 1, []uint32{90, 2, 3, 3}, []policy.State{policy.Draining}, 0, 1},
		{"all over the bound keeps the preferred", 0.1, []uint32{5, 5, 5, 5}, nil, 0, 0},
		{"alone", 1, []uint32{50}, nil, 0, 0},
		{"panic", 1.25, []uint32{0, 0}, []policy.State{policy.Unhealthy, policy.Draining}, 0, 0},
		{"empty pool", 1.25, nil, nil, 0, -1},
	} {
		r := &policy.Replicas{}
		for i, n := range c.open {
			// Ranks that make the order that of the list for the session.
			r.List = append(r.List, policy.Replica{ID: uint32(i + 1), Rank: descending[i], Weight: 1, Open: n})
		}
		for i, s := range c.states {
			r.List[i].State = s
		}
		q := policy.Query{Key: key("s1"), Leaving: c.leaving}
		if got := (policy.ConsistentHash{LoadFactor: c.factor}).Choose(r, q); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// descending are ranks in the rendezvous order of session s1.
var descending = func() (ranks []uint64) {
	r := &policy.Replicas{}
	r.Apply(members("a", "b", "c", "d"), 0, 0)
	for _, i := range policy.Spares(nil, r, key("s1"), -1, 4, 0) {
		ranks = append(ranks, r.List[i].Rank)
	}
	return ranks
}()
