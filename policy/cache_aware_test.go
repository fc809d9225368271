package policy_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

func TestCacheAware(t *testing.T) {
	type match = policy.PrefixMatch
	const draining, unhealthy = policy.Draining, policy.Unhealthy
	held := func(share float64, ids ...uint32) (m match) {
		copy(m.Holders[:], ids)
		m.Share = share
		return m
	}
	wide := held(1, 1, 2, 3, 4)
	wide.Wide = true
	for _, c := range []struct {
		name    string
		open    []uint32 // least loaded without a match is the last
		match   match
		states  []policy.State
		leaving uint32
		want    int
	}{
		{"nothing known", []uint32{3, 3, 3, 2}, match{}, nil, 0, 3},
		{"one holds it", []uint32{3, 3, 3, 2}, held(0.9, 2), nil, 0, 1},
		{"share at the threshold", []uint32{3, 3, 3, 2}, held(0.3, 2), nil, 0, 3},
		{"share above it", []uint32{3, 3, 3, 2}, held(0.31, 2), nil, 0, 1},
		{"the least loaded of the holders", []uint32{5, 4, 3, 2}, held(0.9, 1, 2), nil, 0, 1},
		{"equal holders: chosen least recently", []uint32{4, 4, 3, 2}, held(0.9, 2, 1), nil, 0, 0},
		{"most hold it", []uint32{3, 3, 3, 2}, held(0.9, 1, 2, 3), nil, 0, 3},
		{"half hold it", []uint32{4, 3, 3, 2}, held(0.9, 1, 2), nil, 0, 1},
		{"most of those that may take one", []uint32{3, 3, 3, 2}, held(0.9, 2, 3), []policy.State{unhealthy}, 0, 3},
		{"a wide one", []uint32{3, 3, 3, 2, 2, 2, 2, 2, 2, 1}, wide, nil, 0, 9},
		{"both of two", []uint32{3, 2}, held(0.9, 1, 2), nil, 0, 1},
		{"one of two", []uint32{3, 2}, held(0.9, 1), nil, 0, 0},
		{"the only one", []uint32{3}, held(0.9, 1), nil, 0, 0},
		{"the holder drains", []uint32{3, 3, 3, 2}, held(0.9, 2), []policy.State{0, draining}, 0, 3},
		{"one of the holders drains", []uint32{3, 3, 3, 2}, held(0.9, 2, 3), []policy.State{0, draining}, 0, 2},
		{"the holder is gone", []uint32{3, 3, 3, 2}, held(0.9, 99), nil, 0, 3},
		{"at the margin", []uint32{3, 12, 3, 2}, held(0.9, 2), nil, 0, 1},
		{"beyond the margin", []uint32{3, 13, 3, 2}, held(0.9, 2), nil, 0, 3},
		{"beyond the margin but not the factor", []uint32{30, 41, 30, 30}, held(0.9, 2), nil, 0, 1},
		{"beyond both", []uint32{22, 33, 22, 21}, held(0.9, 2), nil, 0, 3},
		{"another is beyond both", []uint32{90, 3, 3, 2}, held(0.9, 2), nil, 0, 1},
		{"a holder within it", []uint32{90, 12, 3, 2}, held(0.9, 1, 2), nil, 0, 1},
		{"without the session that leaves", []uint32{3, 13, 3, 2}, held(0.9, 2), nil, 2, 1},
		{"panic", []uint32{3, 2}, held(0.9, 1), []policy.State{draining, unhealthy}, 0, 0},
		{"empty pool", nil, held(0.9, 1), nil, 0, -1},
	} {
		r := replicas(c.open...)
		for i := range r.List {
			r.List[i].LastChosen = uint64(i + 1)
		}
		for i, s := range c.states {
			r.List[i].State = s
		}
		p := policy.CacheAware{Threshold: 0.3, BalanceAbs: 10, BalanceRel: 1.5}
		if got := p.Choose(r, policy.Query{Key: key("s1"), Leaving: c.leaving, Prefix: c.match}); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestCacheAwareWeighs loads by weight: six on a weight of 3 are two.
func TestCacheAwareWeighs(t *testing.T) {
	p := policy.CacheAware{Threshold: 0.3, BalanceAbs: 2, BalanceRel: 1}
	for open, want := range map[uint32]int{9: 0, 10: 1} {
		r := replicas(open, 1)
		r.List[0].Weight = 3
		m := policy.PrefixMatch{Holders: [4]uint32{1}, Share: 1}
		if got := p.Choose(r, policy.Query{Prefix: m}); got != want {
			t.Errorf("%d open: %d", open, got)
		}
	}
}

// cachePool is a pool of n replicas under cache_aware.
func cachePool(n int, p policy.CacheAware) *policy.Pool {
	pool := &policy.Pool{Policy: p, Prefixes: policy.NewPrefixIndex(65536), Timeout: 1 << 40, MaxSessions: 1 << 20}
	var ms []policy.Member
	for i := range n {
		ms = append(ms, policy.Member{Address: fmt.Sprint("r", i), Weight: 1})
	}
	pool.Apply(ms, 0, 0)
	return pool
}

// twoParts is a prompt of a shared part and one of its own, both drawn by number.
func twoParts(shared uint64, sharedBytes int, own uint64, ownBytes int) *policy.Prompt {
	p := &policy.Prompt{}
	p.Reset(7)
	for _, part := range []struct {
		seed uint64
		size int
	}{{shared, sharedBytes}, {own, ownBytes}} {
		r := rand.New(rand.NewPCG(part.seed, 9))
		b := make([]byte, part.size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		p.Write(b)
	}
	return p
}

// TestClaimASharedPrefixSpreads: with the longest prefix alone, the Mooncake
// conversation trace put all load on one of ten nodes. Here 1000 sessions with
// one system prompt over ten replicas are level in the end, and no replica ever
// has more than the margin above the fair share.
func TestClaimASharedPrefixSpreads(t *testing.T) {
	p := cachePool(10, policy.CacheAware{Threshold: 0.3, BalanceAbs: 64, BalanceRel: 1.5})
	for n, id := range manyIDs(1000) {
		p.Turn(key(id), twoParts(1, 4000, uint64(n+2), 1000), 0)
		for _, c := range p.List {
			if int(c.Open) > n/10+1+65 {
				t.Fatalf("after %d sessions one replica has %d", n+1, c.Open)
			}
		}
	}
	if d := spread(&p.Replicas, open); d > 1 {
		t.Errorf("spread %d: %+v", d, p.List)
	}
}

// TestClaimMissesGoByLoad: replica a has 30 sessions and one known prefix, b none
// and 500: "expect B to receive nearly all" of 50 sessions that share nothing
// (sgl-project/sglang#14532).
func TestClaimMissesGoByLoad(t *testing.T) {
	p := cachePool(2, policy.CacheAware{Threshold: 0.3, BalanceAbs: 64, BalanceRel: 1.5})
	p.List[0].State = policy.Draining
	for n, id := range manyIDs(500) {
		p.Turn(key(id), twoParts(uint64(n), 1000, 0, 0), 0)
		p.Finish(key(id))
	}
	p.List[0].State, p.List[1].State = policy.Active, policy.Draining
	for n, id := range manyIDs(530)[500:] {
		p.Turn(key(id), twoParts(501, 1000, uint64(n), 0), 0)
	}
	p.List[1].State = policy.Active
	for n, id := range manyIDs(580)[530:] {
		p.Turn(key(id), twoParts(uint64(1000+n), 1000, 0, 0), 0)
	}
	if a, b := p.List[0].Open, p.List[1].Open; a != 40 || b != 40 {
		t.Errorf("a has %d and b %d; the first 30 belong to b", a, b)
	}
}

// TestClaimAffinityIsPerReplica: 1000 sessions over four replicas in groups of
// equal prompts, while one replica is far over the others all the time
// (NVIDIA-NeMo/Gym#3345). A gate over the whole pool would be open throughout and
// no session would find its group; here nearly all do.
func TestClaimAffinityIsPerReplica(t *testing.T) {
	for _, c := range []policy.CacheAware{
		{Threshold: 0.3, BalanceAbs: 4, BalanceRel: 1.1}, {Threshold: 0.3, BalanceAbs: 32, BalanceRel: 1.5},
	} {
		p := cachePool(4, c)
		p.List[0].Open = 2000
		home, followed := map[int]uint32{}, 0
		at := map[string]uint32{}
		for n, id := range manyIDs(1000) {
			group := n % 125
			d := p.Turn(key(id), twoParts(uint64(group), 2000, uint64(n), 100), 0)
			if at[id] = d.Replica; n < 125 {
				home[group] = d.Replica
			} else if d.Replica == home[group] {
				followed++
			}
		}
		for range 3 {
			for n, id := range manyIDs(1000) {
				if d := p.Turn(key(id), twoParts(uint64(n%125), 2000, uint64(n), 500), 0); d.Reason != policy.Pinned || d.Replica != at[id] {
					t.Fatalf("%+v: a later turn of %s: %+v, was on %d", c, id, d, at[id])
				}
			}
		}
		if followed < 875*95/100 {
			t.Errorf("%+v: %d of 875 followed their group", c, followed)
		}
		if high, low := p.List[1].Open, p.List[3].Open; p.List[0].Open != 2000 || high > 2*low {
			t.Errorf("%+v: %d, %d, %d, %d open", c, p.List[0].Open, high, p.List[2].Open, low)
		}
	}
}
