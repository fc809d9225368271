package plugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

func named(name string) string { return `,"policy":"` + name + `"` }

// pinless are the policies under which every turn is a choice of its own.
var pinless = []string{"least_loaded", "power_of_two", "round_robin", "random"}

// Clients release sessions without knowing the policy (PrimeIntellect-ai/prime-rl#3563).
func TestReleaseIsAnsweredUnderEachPolicy(t *testing.T) {
	for _, name := range policyNames {
		g := startGateway(t, 2, threeReplicas+named(name))
		g.turn("s")
		for _, id := range []string{"s", "s", "unknown"} {
			if r := g.release(id); r.Status != 200 || r.ResponseBody != `{"status":"ok","session_id":"`+id+`"}`+"\n" {
				t.Errorf("%s: release of %s: %d %s", name, id, r.Status, r.ResponseBody)
			}
		}
		g.mustOpen(0, 0, 0)
	}
}

func TestPinlessPoliciesWriteNoSharedData(t *testing.T) {
	for _, name := range append(slices.Clone(pinless), "consistent_hash") {
		g := startGateway(t, 2, threeReplicas+named(name)+`,"consistent_hash":{"load_factor":0}`)
		g.turn("first") // who is heard first is noted
		var written []string
		g.OnSharedData(func(_ int, op hostsim.SharedOp, key string) {
			if op == hostsim.SharedSet {
				written = append(written, key)
			}
		})
		for i := range 30 {
			if r := g.turn(fmt.Sprint("s", i%5)); r.reason != "placed" {
				t.Errorf("%s: reason %s", name, r.reason)
			}
			if r := g.keyless(); r.reason != "keyless" {
				t.Errorf("%s: reason %s", name, r.reason)
			}
		}
		g.OnSharedData(nil)
		if len(written) > 0 {
			t.Errorf("%s: 60 requests wrote %v", name, written)
		}
		g.mustOpen(0, 0, 0)
	}
}

// A worker knows its own running requests at once and those of others from their
// last tick.
func TestLeastLoadedCountsTheRequestsOfOtherWorkers(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+named("least_loaded"))
	var running []*hostsim.Stream
	for range 6 { // each worker, alone, spreads its own evenly
		running = append(running, g.begin(0, "a"))
	}
	busy := replicaOf(running[0])
	for _, s := range running {
		if replicaOf(s) != busy {
			g.end(s, hostsim.EndNormal)
		}
	}
	g.Advance(2 * tick)
	for i := range 3 {
		if s := g.begin(1, fmt.Sprint("b", i)); replicaOf(s) == busy {
			t.Errorf("request %d of the second worker went where three of the first run", i)
		}
	}
	g.Advance(2 * tick)
	at := map[string]int{}
	for range 4 { // 3 and 3 run: the first worker must know
		at[replicaOf(g.begin(0, ""))]++
	}
	if at[busy] != 2 {
		t.Errorf("with equal loads 4 requests went %v", at)
	}
}

// What a crashed worker was serving is no load for ever.
func TestLeastLoadedForgetsWorkersThatAreGone(t *testing.T) {
	data := newMemoryData()
	alive, gone := newInflight(data, "p", 1), newInflight(data, "p", 2)
	gone.begin(7)
	if err := gone.publish(1000); err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct {
		now  int64
		want uint32
	}{{1000, 1}, {1000 + staleAfter - 1, 1}, {1000 + staleAfter, 0}} {
		if err := alive.observe(at.now); err != nil || alive.on(7) != at.want {
			t.Errorf("at %d: %d running, %v, want %d", at.now, alive.on(7), err, at.want)
		}
	}
	alive.begin(7)
	if alive.on(7) != 1 {
		t.Errorf("own requests: %d", alive.on(7))
	}
}

func TestAPoolHasItsOwnPolicy(t *testing.T) {
	g := startGateway(t, 1, `"policy":"round_robin","pools":[
		{"name":"a","cluster":"ca","replicas":["10.0.0.1:1","10.0.0.2:1"]},
		{"name":"b","cluster":"cb","replicas":["10.0.0.1:1","10.0.0.2:1"],"policy":"sticky_least_loaded"}]`)
	want := map[string][]string{"ca": {"placed", "placed", "placed"}, "cb": {"placed", "pinned", "pinned"}}
	for cluster, reasons := range want {
		for _, reason := range reasons {
			r := turnOf("s")
			r.Cluster = cluster
			if got := g.on(0, r); got.reason != reason {
				t.Errorf("%s: reason %s, want %s", cluster, got.reason, reason)
			}
		}
	}
	g.Advance(2 * tick)
	for name, n := range map[string]int64{"a.policy.round_robin.reason.placed": 3, "b.policy.sticky_least_loaded.reason.pinned": 2} {
		if got := g.Metric("pinwheel_decisions_total.pool." + name); got != n {
			t.Errorf("%s: %d, want %d", name, got, n)
		}
	}
}

// A turn without a pin makes no garbage either.
func TestAPinlessTurnAllocatesNothing(t *testing.T) {
	for _, name := range policyNames {
		c := benchConfig(1000)
		c.ConsistentHash.LoadFactor = 0
		p := newPool(lentData{newMemoryData()}, PoolConfig{Name: "p", Policy: name, Members: addresses(64)}, c, 1)
		if p.chooser.Pins() {
			continue
		}
		p.store.adopt(0, 0)
		key := keyOf("s")
		turn := func() {
			d := p.decide(key, true, 0, nil, 1000)
			if d.Reason != policy.Placed || len(p.targetOf(d, key, 1000)) == 0 {
				t.Errorf("%s: %+v", name, d)
			}
			p.inflight.begin(d.Replica)
			p.inflight.end(d.Replica)
		}
		for range 2000 {
			turn()
		}
		if n := testing.AllocsPerRun(2000, turn); n != 0 {
			t.Errorf("%s: %v allocations for a turn, want 0", name, n)
		}
	}
}

// vllm-project/production-stack#8, in the gateway: of 1000 sessions under an unbounded
// hash a fifth moves when four replicas become five, and back; a shuffled list moves
// none; another address moves its own, and what comes first there.
func TestAnUnboundedHashMovesFewSessions(t *testing.T) {
	const config = `,"policy":"consistent_hash","consistent_hash":{"load_factor":0}`
	list := func(last ...int) string {
		var b []string
		for _, n := range last {
			b = append(b, fmt.Sprintf(`"10.0.0.%d:8000"`, n))
		}
		return `"replicas":[` + strings.Join(b, ",") + `]` + config
	}
	g := startGateway(t, 2, list(1, 2, 3, 4))
	homes := func() (at [1000]string) {
		for i := range at {
			at[i] = g.turn(fmt.Sprint("s", i)).replica
		}
		return at
	}
	first := homes()
	for _, step := range []struct {
		list        string
		least, most int // sessions that are not where they were at first
	}{
		{list(4, 2, 1, 3), 0, 0}, {list(1, 2, 3, 4, 5), 140, 260}, {list(3, 5, 1, 4, 2), 140, 260},
		{list(1, 2, 3, 4), 0, 0}, {list(6, 2, 3, 4), 340, 530},
	} {
		if err := g.reconfigure(step.list); err != nil {
			t.Fatal(err)
		}
		moved := 0
		for i, home := range homes() {
			if home != first[i] {
				moved++
			}
		}
		if moved < step.least || moved > step.most {
			t.Errorf("%s: %d of 1000 moved, want %d to %d", step.list, moved, step.least, step.most)
		}
	}
}
