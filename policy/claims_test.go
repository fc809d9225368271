package policy_test

// Each test here holds a sentence that the documentation says.

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

func spread(r *policy.Replicas, count func(policy.Replica) int) int {
	low, high := math.MaxInt, 0
	for _, c := range r.List {
		if c.State == policy.Active {
			low, high = min(low, count(c)), max(high, count(c))
		}
	}
	return high - low
}

func open(c policy.Replica) int { return int(c.Open) }

// "60 concurrent new sessions on 3 replicas: 20/20/20", and 64 first turns over 4
// give 16 each (vllm-project/aibrix#2422).
func TestClaimBurstsAreEven(t *testing.T) {
	for n := 1; n <= 16; n++ {
		p := &policy.Pool{Timeout: 1000, MaxSessions: 1000}
		for i := range n {
			p.Apply(members(append(addresses(&p.Replicas), fmt.Sprint("r", i))...), 0, 0)
		}
		for _, id := range manyIDs(16 * n) {
			p.Turn(key(id), nil, 0)
		}
		if d := spread(&p.Replicas, open); d != 0 {
			t.Errorf("%d replicas: spread %d", n, d)
		}
	}
}

// "200 serial idle sessions on 4 replicas touch all four evenly", the first of
// the tied never favoured (verl-project/verl#7613).
func TestClaimSerialIdleSessionsSpread(t *testing.T) {
	p := pool("a", "b", "c", "d")
	counts := map[uint32]int{}
	for _, id := range manyIDs(200) {
		counts[p.Turn(key(id), nil, 0).Replica]++
		p.Finish(key(id))
	}
	for id, n := range counts {
		if n != 50 {
			t.Errorf("replica %d served %d of 200", id, n)
		}
	}
}

// "A changing candidate set keeps ties within 1": one replica is drained and
// returns while sessions come; every step leaves those that take sessions within
// one of each other.
func TestClaimTiesWithinOneOverAChangingCandidateSet(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	p := pool(names...)
	ids := manyIDs(4 * 50)
	for round := range 50 {
		ms := members(names...)
		ms[round%4].State = policy.Draining
		for i := range 4 {
			if i == 3 {
				ms[round%4].State = policy.Active
			}
			p.Apply(ms, 0, 0)
			p.Turn(key(ids[4*round+i]), nil, 0)
			if d := spread(&p.Replicas, open); d > 1 {
				t.Fatalf("round %d, turn %d: spread %d", round, i, d)
			}
		}
		if d := spread(&p.Replicas, open); d != 0 {
			t.Fatalf("round %d: spread %d after a whole round", round, d)
		}
	}
}

// The same with serial sessions, where every placement is a tie: a replica that
// was away is chosen once when it is back, not until it has caught up with turns
// it missed.
func TestClaimReturnAfterDrainIsNoFlood(t *testing.T) {
	p := pool("a", "b", "c", "d")
	away := members("a", "b", "c", "d")
	away[0].State = policy.Draining
	ids := manyIDs(100)
	for i, id := range ids[:60] {
		if i == 20 {
			p.Apply(away, 0, 0)
		}
		p.Turn(key(id), nil, 0)
		p.Finish(key(id))
	}
	p.Apply(members("a", "b", "c", "d"), 0, 0)
	counts := map[uint32]int{}
	for _, id := range ids[60:] {
		counts[p.Turn(key(id), nil, 0).Replica]++
		p.Finish(key(id))
	}
	for id, n := range counts {
		if n != 10 {
			t.Errorf("replica %d served %d of 40", id, n)
		}
	}
}

// "Fewest open sessions per weight": shares are proportional to weights at every
// moment, to within one session.
func TestClaimSharesFollowWeights(t *testing.T) {
	for _, weights := range [][]uint32{{1, 2}, {3, 2, 1}, {5, 1, 1, 1}, {10, 7, 3}, {100, 50, 25, 25}, {65535, 65535}} {
		r := &policy.Replicas{}
		var ms []policy.Member
		var sum float64
		for i, w := range weights {
			ms = append(ms, policy.Member{Address: fmt.Sprint("r", i), Weight: w})
			sum += float64(w)
		}
		r.Apply(ms, 0, 0)
		for n, id := range manyIDs(600) {
			r.Reserve(sticky(r, key(id), 0), 0)
			for i, c := range r.List {
				fair := float64(n+1) * float64(weights[i]) / sum
				if off := float64(c.Open) - fair; math.Abs(off) > float64(len(weights)-1) {
					t.Fatalf("weights %v: after %d replica %d has %d, fair is %.2f", weights, n+1, i, c.Open, fair)
				}
			}
		}
		for i, c := range r.List {
			if fair := 600 * float64(weights[i]) / sum; math.Abs(float64(c.Open)-fair) > 1 {
				t.Errorf("weights %v: replica %d has %d of 600, fair is %.2f", weights, i, c.Open, fair)
			}
		}
	}
}

// "It receives next placements (at most 2x its fair share while it catches up)":
// in every stretch of placements from the newcomer's arrival until it has caught
// up, which it does.
func TestClaimANewcomerTakesAtMostTwiceItsShare(t *testing.T) {
	for n := 2; n <= 8; n++ {
		for _, weight := range []uint32{1, 2, 3} {
			r := &policy.Replicas{}
			var ms []policy.Member
			for i := range n - 1 {
				ms = append(ms, policy.Member{Address: fmt.Sprint("r", i), Weight: 1})
			}
			r.Apply(ms, 0, 0)
			ids := manyIDs(5000)
			for _, id := range ids[:40*(n-1)] {
				r.Reserve(sticky(r, key(id), 0), 0)
			}
			r.Apply(append(ms, policy.Member{Address: "new", Weight: weight}), 0, 0)
			newcomer := n - 1
			var taken []bool
			for _, id := range ids[1000:] {
				if !r.List[newcomer].Joining {
					break
				}
				i := sticky(r, key(id), 0)
				r.Reserve(i, 0)
				taken = append(taken, i == newcomer)
			}
			twice := 2 * float64(weight) / (float64(n-1) + float64(weight))
			if r.List[newcomer].Joining || len(taken) == 0 || !taken[0] {
				t.Fatalf("n=%d weight=%d: joining %v, taken %v", n, weight, r.List[newcomer].Joining, taken)
			}
			checkShare(t, fmt.Sprintf("n=%d weight=%d", n, weight), taken, twice)
		}
	}
}

// checkShare holds every stretch that begins with a placement on the newcomer and
// ends before another to the share.
func checkShare(t *testing.T, name string, taken []bool, share float64) {
	t.Helper()
	for from := range taken {
		count := 0
		for to := from; to < len(taken); to++ {
			if taken[to] {
				count++
			}
			if float64(count) > share*float64(to-from+1)+1 {
				t.Fatalf("%s: %d of %d placements, twice the share is %.2f", name, count, to-from+1, share)
			}
		}
	}
	count := 0
	for _, is := range taken {
		if is {
			count++
		}
	}
	if share < 1 && float64(count) > share*float64(len(taken))+1 || count == 0 {
		t.Errorf("%s: %d of %d placements, twice the share is %.2f", name, count, len(taken), share)
	}
}

// "Replica added: no session moves", "a shuffled list moves 0"
// (vllm-project/production-stack#8, haproxy/haproxy#842): 1000 sessions, four
// replicas become five and four again, and the list is shuffled.
func TestClaimMembershipMovesNobodyButTheLost(t *testing.T) {
	p := pool("a", "b", "c", "d")
	ids := manyIDs(1000)
	home := map[string]uint32{}
	for _, id := range ids {
		home[id] = p.Turn(key(id), nil, 0).Replica
	}
	for _, list := range [][]string{{"d", "b", "a", "c"}, {"e", "a", "b", "c", "d"}, {"c", "d", "e", "b", "a"}, {"b", "a", "d", "c"}} {
		p.Apply(members(list...), 0, 0)
		for _, id := range ids {
			if d := p.Turn(key(id), nil, 0); d.Reason != policy.Pinned || d.Replica != home[id] {
				t.Fatalf("%v: %s went from %d to %d, %v", list, id, home[id], d.Replica, d.Reason)
			}
		}
	}
	p.Apply(members("x", "b", "c", "d"), 0, 0)
	for _, id := range ids {
		d := p.Turn(key(id), nil, 0)
		if lost := home[id] == 1; lost != (d.Reason == policy.FailoverRemoved) || !lost && d.Replica != home[id] {
			t.Fatalf("a became x: %s went from %d to %d, %v", id, home[id], d.Replica, d.Reason)
		}
	}
}

// "Keyless traffic never shares a key": 480 requests over 8 replicas
// (vllm-project/vime#98), and half with an id disturb nothing.
func TestClaimKeylessSpreadsEvenly(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	p, q := pool(names...), pool(names...)
	counts := map[uint32]int{}
	for range 480 {
		counts[p.Unrecorded(policy.Key{}, policy.Keyless, 0).Replica]++
	}
	for id, n := range counts {
		if n != 60 || len(counts) != 8 {
			t.Errorf("replica %d served %d of 480", id, n)
		}
	}
	for _, id := range manyIDs(240) {
		p.Unrecorded(policy.Key{}, policy.Keyless, 0)
		if with, without := p.Turn(key(id), nil, 0), q.Turn(key(id), nil, 0); with != without {
			t.Fatalf("%s: %+v beside keyless requests, %+v without", id, with, without)
		}
	}
}

// "When none is eligible, all known ones are": new sessions and returning ones,
// and everything is as before once one is well again.
func TestClaimPanic(t *testing.T) {
	p := pool("a", "b", "c")
	ids := manyIDs(30)
	for _, id := range ids[:15] {
		p.Turn(key(id), nil, 0)
	}
	sick := members("a", "b", "c")
	for i := range sick {
		sick[i].State = policy.Unhealthy
	}
	p.Apply(sick, 0, 0)
	for i, id := range ids {
		want := policy.Placed
		if i < 15 {
			want = policy.Pinned
		}
		if d := p.Turn(key(id), nil, 0); d.Reason != want {
			t.Errorf("%s: %v, want %v", id, d.Reason, want)
		}
	}
	var counts []uint32
	for _, c := range p.List {
		counts = append(counts, c.Open)
	}
	if !slices.Equal(counts, []uint32{10, 10, 10}) {
		t.Errorf("counts %v", counts)
	}
	sick[0].State = policy.Active
	p.Apply(sick, 0, 0)
	for _, id := range ids {
		p.Turn(key(id), nil, 0)
	}
	if p.List[0].Open != 30 {
		t.Errorf("one well again has %d of 30", p.List[0].Open)
	}
}
