package policy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// TestLeastLoaded counts running requests, not sessions.
func TestLeastLoaded(t *testing.T) {
	for _, c := range []struct {
		name     string
		inFlight []uint32
		weights  []uint32
		states   []policy.State
		chosen   []uint64
		want     int
	}{
		{"fewest", []uint32{2, 1, 3}, nil, nil, nil, 1},
		{"per weight", []uint32{5, 4, 6}, []uint32{3, 2, 3}, nil, nil, 0},
		{"unknown is none", []uint32{1}, nil, nil, nil, 1},
		{"of the tied the one chosen longest ago", []uint32{1, 0, 0}, nil, nil, []uint64{1, 3, 2}, 2},
		{"or never", []uint32{1, 0, 0}, nil, nil, []uint64{3, 2}, 2},
		{"of those the first", []uint32{0, 0, 0}, nil, nil, nil, 0},
		{"a later one is less loaded", []uint32{1, 1, 0}, nil, nil, []uint64{0, 0, 9}, 2},
		{"draining and unhealthy ones do not count", []uint32{0, 0, 9}, nil, []policy.State{policy.Draining, policy.Unhealthy}, nil, 2},
		{"panic", []uint32{3, 2, 2}, nil, []policy.State{policy.Draining, policy.Unhealthy, policy.Removed}, nil, 1},
	} {
		r := replicas(0, 7, 9)
		for i := range c.weights {
			r.List[i].Weight = c.weights[i]
		}
		for i := range c.states {
			r.List[i].State = c.states[i]
		}
		q := policy.Query{InFlight: c.inFlight, Chosen: c.chosen}
		if got := (policy.LeastLoaded{}).Choose(r, q); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestClaimTurnsAreEven: replicas come and go in step with the requests, and all
// have their turns; by a number of requests some would never have one
// (verl-project/verl#7613).
func TestClaimTurnsAreEven(t *testing.T) {
	for name, p := range map[string]policy.Policy{
		"round_robin": policy.RoundRobin{}, "least_loaded": policy.LeastLoaded{}, "unpinned": unpinned{},
	} {
		for size := 2; size <= 6; size++ {
			for away := range size {
				r := replicas(make([]uint32, size)...)
				counts := make([]int, size)
				var turns policy.Rotation
				for n := range 60 * size {
					r.List[away].State = map[bool]policy.State{true: policy.Active, false: policy.Draining}[n%2 == 0]
					i := p.Choose(r, policy.Query{Chosen: turns.Of(r)})
					turns.Chose(r.List[i].ID)
					counts[i]++
				}
				for i, n := range counts {
					// The one that is away half of the time may have fewer.
					if n < 30 || n > 90 {
						t.Errorf("%s: replica %d of %d had %d turns with %d going away: %v", name, i, size, n, away, counts)
					}
				}
			}
		}
	}
}

// unpinned is what a policy that pins does with requests that get no pin.
type unpinned struct{ policy.StickyLeastLoaded }

func (p unpinned) Choose(r *policy.Replicas, q policy.Query) int { return p.Unpinned(r, q) }

// TestRandomIsUniform over those that may take a session.
func TestRandomIsUniform(t *testing.T) {
	r := replicas(9, 0, 0, 4, 0)
	r.List[1].State = policy.Unhealthy
	rnd := rand.New(rand.NewPCG(1, 1))
	counts := make([]int, 5)
	for range 40_000 {
		counts[policy.Random{}.Choose(r, policy.Query{Random: rnd.Uint64()})]++
	}
	for i, n := range counts {
		want := map[bool]int{true: 10_000}[i != 1]
		if off := math.Abs(float64(n - want)); off > 5*math.Sqrt(float64(want)) {
			t.Errorf("replica %d: %d, want about %d", i, n, want)
		}
	}
}

// TestPowerOfTwoDrawsDistinctPairs: all of them equally often. Whichever of a pair
// is less busy tells the pair: with the other one's load above all.
func TestPowerOfTwoDrawsDistinctPairs(t *testing.T) {
	r := replicas(0, 0, 0, 0)
	rnd := rand.New(rand.NewPCG(2, 2))
	// The busiest is never chosen, the second only with it, and so on: of six
	// pairs the idlest is in three.
	counts := make([]int, 4)
	for range 60_000 {
		counts[policy.PowerOfTwo{}.Choose(r, policy.Query{Random: rnd.Uint64(), InFlight: []uint32{9, 5, 2, 0}})]++
	}
	for i, want := range []int{0, 10_000, 20_000, 30_000} {
		if off := math.Abs(float64(counts[i] - want)); off > 5*math.Sqrt(float64(want)) {
			t.Errorf("%v", counts)
		}
	}
}

// TestClaimPowerOfTwoIsFlatter: 10,000 requests that never end on 100 replicas:
// the fullest is some above the mean of 100, and far less so than by chance
// (Mitzenmacher, 2001).
func TestClaimPowerOfTwoIsFlatter(t *testing.T) {
	above := func(p policy.Policy) (most uint32) {
		r, inFlight := replicas100(), make([]uint32, 100)
		rnd := rand.New(rand.NewPCG(3, 3))
		for range 10_000 {
			i := p.Choose(r, policy.Query{Random: rnd.Uint64(), InFlight: inFlight})
			inFlight[i]++
			most = max(most, inFlight[i])
		}
		return most - 100
	}
	if two, one := above(policy.PowerOfTwo{}), above(policy.Random{}); two > 4 || one < 15 {
		t.Errorf("%d above the mean, %d by chance", two, one)
	}
}

func replicas100() *policy.Replicas {
	r := &policy.Replicas{}
	for i := range 100 {
		r.List = append(r.List, policy.Replica{ID: uint32(i + 1), Weight: 1})
	}
	return r
}

// TestClaimKeylessUnderEveryPolicy: 480 requests without an id over eight replicas
// meet on none of them (vllm-project/vime#98), and an id of their own is no matter.
func TestClaimKeylessUnderEveryPolicy(t *testing.T) {
	for _, name := range policy.Names() {
		chosen, _ := policy.New(name, usual)
		p := pool("a", "b", "c", "d", "e", "f", "g", "h")
		p.Policy = chosen
		counts := map[uint32]int{}
		for range 480 {
			counts[p.Unrecorded(policy.Key{}, policy.Keyless, 0).Replica]++
		}
		slack := 0
		if name == "random" || name == "power_of_two" {
			slack = 37 // five standard deviations
		}
		for id := uint32(1); id <= 8; id++ {
			if n := counts[id]; n < 60-slack || n > 60+slack {
				t.Errorf("%s: replica %d served %d of 480", name, id, n)
			}
		}
	}
}

// TestClaimFastFailuresAttractNobody: of three replicas b fails at once while the
// others take 2 s; 200 requests come at 20 a second. b gets those that begin its
// cool-down and its trials, under every policy. Then d comes, unknown, and gets
// its share; then a and c go (higress-group/higress#3255).
func TestClaimFastFailuresAttractNobody(t *testing.T) {
	for _, name := range policy.Names() {
		chosen, _ := policy.New(name, usual)
		p := pool("a", "b", "c")
		p.Policy, p.Timeout = chosen, 7_200_000
		f := &fastFailure{pool: p, ends: map[int64][]uint32{}, counts: map[string]int{}}
		f.run(manyIDs(200))
		// Three failures, and a trial after 10 s and no sooner.
		if n := f.counts["b"]; n > 4 {
			t.Errorf("%s: b got %d of 200", name, n)
		}
		p.Apply(members("a", "b", "c", "d"), f.now, 0)
		f.run(manyIDs(400)[200:])
		if n := f.counts["d"]; n < 30 {
			t.Errorf("%s: d got %d of the next 200", name, n)
		}
		p.Apply(members("b", "d"), f.now, 0)
		for _, id := range manyIDs(400) {
			p.Finish(key(id))
		}
		if p.Forget(f.now, 0); len(p.List) != 2 {
			t.Errorf("%s: left over: %s", name, list(p))
		}
	}
}

// fastFailure is a pool in which b fails at once and all else takes 2 s.
type fastFailure struct {
	pool   *policy.Pool
	now    int64
	ends   map[int64][]uint32
	counts map[string]int
}

func (f *fastFailure) run(ids []string) {
	p := f.pool
	health := policy.HealthRule{Failures: 3, Cooldown: 10_000, MaxCooldown: 300_000}
	for _, id := range ids {
		f.now += 50
		for _, replica := range f.ends[f.now] {
			p.End(replica)
			p.Succeed(replica, f.now-2000)
		}
		d := p.Turn(key(id), nil, f.now)
		at := p.List[p.Replicas.Index(d.Replica)].Address
		f.counts[at]++
		if at == "b" {
			p.Fail(d.Replica, f.now, f.now, health)
			continue
		}
		p.Begin(d.Replica)
		f.ends[f.now+2000] = append(f.ends[f.now+2000], d.Replica)
	}
}
