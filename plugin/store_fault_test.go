package plugin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// Shared data that fails, at any access, costs a pin and nothing else: counts
// are right again after a repair, and no turn panics.
func TestFailingSharedDataFailsOpen(t *testing.T) {
	for seed := range uint64(300) {
		data := newMemoryData()
		clock := int64(1e6)
		rng := rand.New(rand.NewPCG(seed, 9))
		s := openStore(t, data, addresses(3), testSession(100))
		data.refuse = func(key string, _ bool) error {
			if rng.IntN(5) == 0 {
				return errRefused
			}
			return nil
		}
		mix(s, rand.New(rand.NewPCG(seed, 0)), 60, &clock)()
		data.refuse = nil
		s.reconcile()
		s.reconcile()
		mustBalance(t, data, s, fmt.Sprint("seed ", seed))
	}
}

// Kong/ngx_wasm_module#287: a host that drops values makes the pool empty, no
// more.
func TestLostValuesAreAnEmptyPool(t *testing.T) {
	data := newMemoryData()
	s := openStore(t, data, addresses(3), testSession(100))
	for i := range 10 {
		s.turn(keyOf(fmt.Sprint(i)), nil, 1000)
	}
	clear(data.values)
	clear(data.cas)
	for i := range 9 {
		d, ok := s.turn(keyOf(fmt.Sprint(i)), nil, 2000)
		if !ok || d.Reason != policy.Placed {
			t.Fatalf("turn %d after the loss: %+v, ok %v", i, d, ok)
		}
	}
	mustBalance(t, data, s, "after the loss")
	for i := range s.view.List {
		if s.view.List[i].Open != 3 {
			t.Errorf("%s has %d of 9 sessions", s.view.List[i].Address, s.view.List[i].Open)
		}
	}
}

// A value of nothing comes without an address, and is none: envoyproxy/envoy hands over
// address 0.
func TestEmptyValuesAreNone(t *testing.T) {
	g := startGateway(t, 2, threeReplicas)
	g.turn("s")
	for _, key := range g.SharedData().Keys() {
		if strings.HasPrefix(key, keyRoot) {
			g.SharedData().Set(key, nil, 0)
		}
	}
	for w := range g.Workers() {
		if r := g.on(w, turnOf("s")); r.Status != 200 || r.replica == "" {
			t.Errorf("worker %d: %+v", w, r)
		}
	}
	g.Advance(2 * tick)
	if n := g.Metric("pinwheel_errors_total.kind.panic"); n != 0 {
		t.Errorf("%d panics", n)
	}
}

func TestForeignSchemaIsLeftAlone(t *testing.T) {
	data := newMemoryData()
	s := openStore(t, data, addresses(3), testSession(100))
	for key := range data.values {
		data.values[key][0] = schemaVersion + 1
	}
	before := fmt.Sprint(data.values)
	if d, ok := s.turn(keyOf("a"), nil, 1000); ok {
		t.Errorf("decided by data of another schema: %+v", d)
	}
	if after := fmt.Sprint(data.values); after != before {
		t.Error("wrote over data of another schema")
	}
	if s.stats.faults[faultSchema] == 0 {
		t.Error("not counted")
	}
}

// envoyproxy/envoy#28339: shared data cannot delete, so keys must not grow with
// the sessions ever seen.
func TestKeysDoNotGrowWithSessions(t *testing.T) {
	data := newMemoryData()
	s := openStore(t, data, addresses(3), testSession(1000))
	for i := range 20_000 {
		key := keyOf(fmt.Sprint(i))
		s.turn(key, nil, int64(i))
		s.finish(key.Hash, 1000)
	}
	if keys, most := len(data.values), int(s.view.shards)+1; keys > most {
		t.Errorf("%d keys for %d shards", keys, most)
	}
	for key, v := range data.values {
		if strings.Contains(key, "/s/") && len(v) > 1+pinSize {
			t.Errorf("%s holds %d bytes of ended sessions", key, len(v))
		}
	}
}

// haproxy/haproxy#842: a pin is to a replica, not to a place in a list.
func TestPinsSurviveAChangedConfiguration(t *testing.T) {
	data := newMemoryData()
	s := openStore(t, data, addresses(3), testSession(1000))
	homes := map[string]uint32{}
	for i := range 100 {
		id := fmt.Sprint(i)
		d, _ := s.turn(keyOf(id), nil, 1000)
		homes[id] = d.Replica
	}
	shuffled := addresses(4)
	shuffled[0], shuffled[3] = shuffled[3], shuffled[0]
	// Ten times the sessions would make more shards of a new pool.
	s = openStore(t, data, shuffled, testSession(10_000))
	for id, home := range homes {
		if d, _ := s.turn(keyOf(id), nil, 2000); d.Replica != home || d.Reason != policy.Pinned {
			t.Fatalf("session %s was on %d, is on %d (%v)", id, home, d.Replica, d.Reason)
		}
	}
}
