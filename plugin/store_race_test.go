package plugin

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// interleave runs the functions as workers of one gateway: one at a time, and a
// seeded choice of who goes on before each access to shared data. The same seed
// gives the same order. A worker that kill picks ends there, as a VM does that
// traps.
func interleave(data *memoryData, seed uint64, kill func(*rand.Rand) bool, workers ...func()) {
	rng := rand.New(rand.NewPCG(seed, 1))
	type killed struct{}
	turns := make([]chan struct{}, len(workers))
	yielded := make(chan bool) // true: the worker has ended
	var current int
	data.before = func() {
		me := current
		yielded <- false
		<-turns[me]
		if kill != nil && kill(rng) {
			panic(killed{})
		}
	}
	for i, work := range workers {
		turns[i] = make(chan struct{})
		go func() {
			<-turns[i]
			defer func() {
				if r := recover(); r != nil {
					if _, ok := r.(killed); !ok {
						panic(r)
					}
				}
				yielded <- true
			}()
			work()
		}()
	}
	running := make([]int, len(workers))
	for i := range running {
		running[i] = i
	}
	for len(running) > 0 {
		pick := rng.IntN(len(running))
		current = running[pick]
		turns[current] <- struct{}{}
		if <-yielded {
			running = append(running[:pick], running[pick+1:]...)
		}
	}
	data.before = nil
}

func addresses(n int) (members []policy.Member) {
	for i := range n {
		members = append(members, policy.Member{Address: fmt.Sprintf("10.0.%d.%d:8000", (i+1)>>8, (i+1)&255), Weight: 1})
	}
	return members
}

func testSession(maxSessions int) SessionConfig {
	return SessionConfig{IdleTimeout: time.Hour, MaxSessions: maxSessions}
}

// openStore is a worker's store on the data, configured with the members.
func openStore(t testing.TB, data *memoryData, members []policy.Member, session SessionConfig) *store {
	t.Helper()
	s := newStore(data, PoolConfig{Name: "p", Members: members}, session)
	if !s.adopt(0, 0) {
		t.Fatal("shared data does not answer")
	}
	return s
}

func keyOf(id string) policy.Key { return policy.NewKey(policy.Secret{1}, []byte(id)) }

// mustBalance fails unless each replica's count is the number of pins on it.
func mustBalance(t *testing.T, data *memoryData, s *store, when string) {
	t.Helper()
	s.refresh()
	pins := map[uint32]uint32{}
	for _, p := range data.pins("p") {
		pins[p.Replica]++
	}
	for i := range s.view.List {
		c := &s.view.List[i]
		if c.Open != pins[c.ID] {
			t.Fatalf("%s: %s counts %d open sessions, %d are pinned there", when, c.Address, c.Open, pins[c.ID])
		}
		delete(pins, c.ID)
	}
	if len(pins) > 0 {
		t.Fatalf("%s: pins on replicas that are not listed: %v", when, pins)
	}
}

// vllm-project/aibrix#2422: a burst of first turns all saw the same counters.
func TestConcurrentPlacementIsExact(t *testing.T) {
	for seed := range uint64(200) {
		data := newMemoryData()
		stores := make([]*store, 4)
		for w := range stores {
			stores[w] = openStore(t, data, addresses(3), testSession(1000))
		}
		workers := make([]func(), len(stores))
		for w, s := range stores {
			workers[w] = func() {
				for i := range 15 {
					if d, ok := s.turn(keyOf(fmt.Sprint(w, "/", i)), nil, 1000); !ok || d.Reason != policy.Placed {
						t.Errorf("seed %d: %+v, ok %v", seed, d, ok)
					}
				}
			}
		}
		interleave(data, seed, nil, workers...)
		mustBalance(t, data, stores[0], fmt.Sprint("seed ", seed))
		for i := range stores[0].view.List {
			if got := stores[0].view.List[i].Open; got != 20 {
				t.Fatalf("seed %d: 60 sessions on 3 replicas, one has %d", seed, got)
			}
		}
	}
}

// All first turns of one session, whichever workers they meet, end on one replica.
func TestRacingFirstTurnsAgree(t *testing.T) {
	for seed := range uint64(500) {
		data := newMemoryData()
		homes := make([]uint32, 4)
		var stores []*store
		var workers []func()
		for w := range homes {
			s := openStore(t, data, addresses(4), testSession(1000))
			stores = append(stores, s)
			workers = append(workers, func() {
				d, ok := s.turn(keyOf("s"), nil, 1000)
				if !ok {
					t.Errorf("seed %d: not recorded", seed)
				}
				homes[w] = d.Replica
			})
		}
		interleave(data, seed, nil, workers...)
		for _, h := range homes {
			if h == 0 || h != homes[0] {
				t.Fatalf("seed %d: one session, homes %v", seed, homes)
			}
		}
		mustBalance(t, data, stores[0], fmt.Sprint("seed ", seed))
	}
}

// mix is a worker's random life: turns, releases, sweeps, membership, discovery,
// answers, retries, orders.
func mix(s *store, rng *rand.Rand, steps int, clock *int64) func() {
	return func() {
		for range steps {
			*clock += int64(rng.IntN(int(time.Minute.Milliseconds())))
			key := keyOf(fmt.Sprint(rng.IntN(12)))
			switch rng.IntN(16) {
			case 0, 1:
				s.finish(key.Hash, 1000)
			case 2:
				s.sweepNext(*clock)
			case 3:
				members := addresses(1 + rng.IntN(4))
				members[0].State = policy.State(rng.IntN(3))
				s.members, s.sum, s.health = members, sumOf(members, s.timeout), policy.HealthRule{Failures: 2, Cooldown: 1, MaxCooldown: 1 << 20}
				s.adopt(*clock, 0)
			case 4:
				if cas, ok := s.refresh(); ok {
					s.forgetRemoved(nil, cas, 0)
				}
			case 5:
				s.touch(key.Hash, uint32(1+rng.IntN(4)), *clock)
			case 6:
				s.drain(addresses(4)[rng.IntN(4)].Address, rng.IntN(2) == 0)
			case 7:
				s.reset(*clock)
			case 8:
				members := addresses(1 + rng.IntN(4))
				s.grace = int64(rng.IntN(3)) * time.Minute.Milliseconds()
				s.discovered(members, rng.IntN(2) == 0, *clock)
			case 9:
				s.answered(uint32(1+rng.IntN(6)), rng.IntN(3) == 0, *clock-int64(rng.IntN(2)), *clock)
			case 10:
				s.follow(key.Hash, uint32(1+rng.IntN(6)), uint32(1+rng.IntN(6)), *clock)
			case 11:
				s.hear(uint64(rng.IntN(20)), *clock)
			default:
				s.turn(key, nil, *clock)
			}
		}
	}
}

func TestCountsEqualPinsAfterAnyRace(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	for seed := range uint64(2000) {
		data := newMemoryData()
		clock := hour
		session := testSession(8 + int(seed%8)) // small enough to be full at times
		session.IdleTimeout = 10 * time.Minute
		var stores []*store
		var workers []func()
		for w := range 3 {
			s := openStore(t, data, addresses(3), session)
			stores = append(stores, s)
			workers = append(workers, mix(s, rand.New(rand.NewPCG(seed, uint64(w))), 12, &clock))
		}
		interleave(data, seed, nil, workers...)
		mustBalance(t, data, stores[0], fmt.Sprint("seed ", seed))
		if n := len(data.pins("p")); n > session.MaxSessions {
			t.Fatalf("seed %d: %d pins, at most %d allowed", seed, n, session.MaxSessions)
		}
		for w, s := range stores {
			if n := s.stats.faults[faultCount]; n > 0 {
				t.Fatalf("seed %d, worker %d: %d counts would have gone below zero", seed, w, n)
			}
		}
	}
}

// A VM that dies in the middle leaves counts off by what it had under way;
// reconcile finds that and nothing else.
func TestReconcileRepairsWhatADeadWorkerLeft(t *testing.T) {
	drifted := 0
	for seed := range uint64(500) {
		data := newMemoryData()
		clock := int64(1e6)
		var workers []func()
		for w := range 3 {
			s := openStore(t, data, addresses(3), testSession(100))
			workers = append(workers, mix(s, rand.New(rand.NewPCG(seed, uint64(w))), 8, &clock))
		}
		interleave(data, seed, func(r *rand.Rand) bool { return r.IntN(40) == 0 }, workers...)
		s := openStore(t, data, addresses(3), testSession(100))
		if s.reconcile() != 0 {
			t.Fatalf("seed %d: repaired on the first look, which may have been a placement under way", seed)
		}
		if s.reconcile() > 0 {
			drifted++
		}
		mustBalance(t, data, s, fmt.Sprint("seed ", seed))
		if s.reconcile(); s.reconcile() != 0 {
			t.Fatalf("seed %d: repaired again what was right", seed)
		}
	}
	if drifted == 0 {
		t.Error("no run left a count to repair: the test shows nothing")
	}
}

// A drift between records that differ may be another placement each time: it takes
// surePasses to be one.
func TestReconcileWaitsWhileCountsChange(t *testing.T) {
	data := newMemoryData()
	s, busy := openStore(t, data, addresses(2), testSession(100)), openStore(t, data, addresses(2), testSession(100))
	busy.turn(keyOf("a"), nil, 1000)
	busy.open(1, true, 1000) // died here
	for pass := 1; pass <= surePasses; pass++ {
		want := uint64(0)
		if pass == surePasses {
			want = 1
		}
		if got := s.reconcile(); got != want {
			t.Fatalf("pass %d repaired %d, want %d", pass, got, want)
		}
		busy.finish(keyOf(fmt.Sprint(pass-1)).Hash, 1000)
		busy.turn(keyOf(fmt.Sprint(pass)), nil, 1000)
	}
	mustBalance(t, data, s, "after the repair")
}

func TestReconcileLeavesALiveWorkerAlone(t *testing.T) {
	for seed := range uint64(300) {
		data := newMemoryData()
		clock := int64(1e6)
		busy := openStore(t, data, addresses(3), testSession(100))
		repairer := openStore(t, data, addresses(3), testSession(100))
		done := false
		interleave(data, seed, nil,
			func() {
				mix(busy, rand.New(rand.NewPCG(seed, 0)), 30, &clock)()
				done = true
			},
			func() {
				// Passes are a tick apart: a step that was under way at one has
				// ended before the next.
				for last := int64(0); !done; data.before() {
					if clock-last > 2*time.Minute.Milliseconds() {
						last = clock
						repairer.reconcile()
					}
				}
			})
		mustBalance(t, data, busy, fmt.Sprint("seed ", seed))
	}
}

// A worker that has not heard of a replica's return asks before it sends a session
// away from there, also where another worker has placed the session since.
func TestNoSessionLeavesByAnOldView(t *testing.T) {
	data := newMemoryData()
	members := addresses(2)
	s, other := openStore(t, data, members, testSession(100)), openStore(t, data, members, testSession(100))
	home, _ := other.turn(keyOf("s"), nil, 1000)
	at := other.view.Index(home.Replica)
	members[at].State = policy.Unhealthy
	s.members, s.sum = members, 1
	s.adopt(1000, 0)
	members[at].State = policy.Active
	other.sum = 2
	other.adopt(1000, 0)
	if d, ok := s.turn(keyOf("s"), nil, 1000); !ok || d.Reason != policy.Pinned || d.Replica != home.Replica {
		t.Errorf("well again: %+v, ok %v", d, ok)
	}
	other.turn(keyOf("t"), nil, 1000)
	// Placed on a replica that this worker has not heard of.
	other.members, other.sum = addresses(3), 3
	other.adopt(1000, 0)
	home, _ = other.turn(keyOf("new"), nil, 1000)
	if d, ok := s.turn(keyOf("new"), nil, 1000); home.Replica != 3 || !ok || d.Reason != policy.Pinned || d.Replica != 3 {
		t.Errorf("placed on %d: %+v, ok %v", home.Replica, d, ok)
	}
}
