package plugin

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// A reset in the middle of turns, releases and sweeps of other workers: whatever
// the order, what was placed before it ends, what is placed after it counts, and
// nothing of it is left in the end.
func TestResetAmongTurnsIsExact(t *testing.T) {
	moved := 0
	for seed := range uint64(2000) {
		data := newMemoryData()
		session := testSession(1000)
		stores := make([]*store, 4)
		for w := range stores {
			stores[w] = openStore(t, data, addresses(3), session)
		}
		for i := range 6 {
			stores[0].turn(keyOf(fmt.Sprint("old", i)), nil, 1000)
		}
		var workers []func()
		for w, s := range stores[:3] {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			workers = append(workers, func() {
				for range 8 {
					id := fmt.Sprint([]string{"old", "new"}[rng.IntN(2)], rng.IntN(6))
					switch rng.IntN(6) {
					case 0:
						s.finish(keyOf(id).Hash, 2000)
					case 1:
						s.sweepNext(2000)
					default:
						if _, ok := s.turn(keyOf(id), nil, 2000); !ok {
							t.Errorf("seed %d: a turn was not recorded", seed)
						}
					}
				}
			})
		}
		workers = append(workers, func() {
			if _, ok := stores[3].reset(2000); !ok {
				t.Errorf("seed %d: no reset", seed)
			}
		})
		interleave(data, seed, nil, workers...)
		mustBalance(t, data, stores[0], fmt.Sprint("seed ", seed))
		for w, s := range stores {
			s.refresh()
			if n := s.stats.faults[faultCount]; n > 0 {
				t.Fatalf("seed %d, worker %d: %d counts would have gone below zero", seed, w, n)
			}
		}
		s := stores[1]
		if s.view.Void(1) || s.view.Void(2) || s.view.Void(3) {
			moved++
		}
		// Sessions of after the reset are where they were, all others are new.
		for h, pin := range data.pins("p") {
			want := policy.Pinned
			if s.view.Void(pin.Replica) {
				want = policy.Placed
			}
			if d, ok := s.turn(policy.Key{Hash: h}, nil, 3000); !ok || d.Reason != want || want == policy.Pinned && d.Replica != pin.Replica {
				t.Fatalf("seed %d: %+v, want %v", seed, d, want)
			}
		}
		pins := len(data.pins("p"))
		s.sweep(s.view.shards, 3000)
		cas, _ := s.refresh()
		s.forgetRemoved(nil, cas, 3000)
		mustBalance(t, data, s, fmt.Sprint("seed ", seed, ", swept"))
		if len(s.view.List) != 3 || int(s.view.Open()) != pins {
			t.Fatalf("seed %d: in the end %d sessions, want %d, on %+v", seed, s.view.Open(), pins, s.view.List)
		}
	}
	if moved < 1000 {
		t.Errorf("only %d of 2000 resets had something to end", moved)
	}
}

// Workers that drain and undrain at once lose no session and no order.
func TestOrdersOfManyWorkersAllHold(t *testing.T) {
	for seed := range uint64(300) {
		data := newMemoryData()
		members := addresses(4)
		var workers []func()
		for w := range 3 {
			s := openStore(t, data, members, testSession(1000))
			workers = append(workers, func() {
				for i := range 5 {
					s.turn(keyOf(fmt.Sprint(w, i)), nil, 1000)
				}
				for range 2 {
					if id, ok := s.drain(members[w].Address, true); !ok || int(id) != w+1 {
						t.Errorf("seed %d: not drained", seed)
					}
				}
				s.adopt(1000, 0)
				if d, ok := s.turn(keyOf(fmt.Sprint(w, "late")), nil, 1000); !ok || int(d.Replica) == w+1 {
					t.Errorf("seed %d: a session came to the drained replica %d", seed, d.Replica)
				}
			})
		}
		interleave(data, seed, nil, workers...)
		s := openStore(t, data, members, testSession(1000))
		mustBalance(t, data, s, fmt.Sprint("seed ", seed))
		for i, c := range s.view.List {
			if c.Drained != (i < 3) {
				t.Fatalf("seed %d: %+v", seed, c)
			}
		}
	}
}

// A drain holds, whatever becomes of the replica's id while it is ordered.
func TestADrainAmongResetsHolds(t *testing.T) {
	const address = "10.0.0.1:8000"
	for seed := range uint64(500) {
		data := newMemoryData()
		operator := openStore(t, data, addresses(3), testSession(100))
		other := openStore(t, data, addresses(3), testSession(100))
		for i := range 6 {
			other.turn(keyOf(fmt.Sprint(i)), nil, 1000)
		}
		done := false
		interleave(data, seed, nil, func() {
			operator.refresh()
			_, ok := operator.drain(address, true)
			done = ok
		}, func() {
			other.reset(1000)
		})
		operator.refresh()
		i := operator.view.Index(operator.member(address))
		if !done || !operator.view.List[i].Drained {
			t.Fatalf("seed %d: ordered %v, %+v", seed, done, operator.view.List)
		}
	}
}

func TestOrdersFailWhenSharedDataDoes(t *testing.T) {
	data := newMemoryData()
	s := openStore(t, data, addresses(2), testSession(100))
	s.turn(keyOf("a"), nil, 1000)
	for _, writes := range []bool{false, true} {
		data.refuse = func(_ string, write bool) error {
			if write == writes {
				return errRefused
			}
			return nil
		}
		if _, ok := s.drain(addresses(1)[0].Address, true); ok {
			t.Errorf("drained, writes refused: %v", writes)
		}
		if _, ok := s.reset(1000); ok {
			t.Errorf("reset, writes refused: %v", writes)
		}
	}
	data.refuse = nil
	if s.refresh(); s.view.List[0].Drained || s.view.Open() != 1 {
		t.Errorf("%+v", s.view.List)
	}
}

// A full table of void pins is a table with room.
func TestResetMakesRoomAtOnce(t *testing.T) {
	const most = 5000
	data := newMemoryData()
	s := openStore(t, data, addresses(3), testSession(most))
	for i := range most {
		s.turn(keyOf(fmt.Sprint("old", i)), nil, 1000)
	}
	if d, _ := s.turn(keyOf("one more"), nil, 1000); d.Reason != policy.TableFull {
		t.Fatalf("%+v", d)
	}
	later := int64(1000) + 2*roomPause
	s.reset(later)
	for i := range 100 {
		if d, ok := s.turn(keyOf(fmt.Sprint("new", i)), nil, later); !ok || d.Reason != policy.Placed {
			t.Fatalf("session %d after the reset: %+v, ok %v", i, d, ok)
		}
	}
	mustBalance(t, data, s, "after the reset")
	if s.stats.expired != 0 {
		t.Errorf("%d counted as expired", s.stats.expired)
	}
}
