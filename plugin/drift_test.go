package plugin

import (
	"fmt"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// falsify writes other counts into the default pool's record.
func (g *gateway) falsify(change func(r *record)) {
	g.t.Helper()
	r := g.record("default")
	change(&r)
	if status := g.SharedData().Set(keyRoot+"default/replicas", r.encode(nil), 0); status != hostsim.StatusOK {
		g.t.Fatal(status)
	}
}

// vllm-project/router#197: a periodic repair reset real load to zero. Ours repairs
// what is wrong and nothing else.
func TestDriftIsRepaired(t *testing.T) {
	g := startGateway(t, 2, threeReplicas)
	for i := range 12 {
		g.turn(fmt.Sprint(i))
	}
	g.Advance(5 * time.Minute)
	if n := g.Metric("pinwheel_drift_repaired_total.pool.default"); n != 0 {
		t.Errorf("%d repairs of exact counts", n)
	}
	g.mustOpen(4, 4, 4)
	g.falsify(func(r *record) { r.List[0].Open += 5; r.List[2].Open = 0 })
	g.Advance(2 * time.Minute)
	g.mustOpen(4, 4, 4)
	if n := g.Metric("pinwheel_drift_repaired_total.pool.default"); n != 9 {
		t.Errorf("%d repairs counted, want 9", n)
	}
}

// A VM that dies between counting a session and pinning it leaves a count too
// high by one.
func TestACrashWithinAPlacementIsRepaired(t *testing.T) {
	g := startWith(t, hosttest.Options{Workers: 2, AllowTraps: true, Adjust: func(c *hostsim.Config) {
		c.FailurePolicy = hostsim.FailReload
	}}, twoReplicas)
	g.on(1, turnOf("kept"))
	counted := false
	g.OnSharedData(func(w int, op hostsim.SharedOp, key string) {
		switch {
		case w != 0 || op != hostsim.SharedSet:
		case key == keyRoot+"default/replicas":
			counted = true
		case counted:
			panic("crashed by the test")
		}
	})
	if r := g.Do(0, turnOf("lost")); r.Status != 503 {
		t.Errorf("status %d of the request in which the VM died", r.Status)
	}
	g.OnSharedData(nil)
	if n := g.sessions("default"); n != 2 {
		t.Fatalf("%d sessions counted, want 2, one of them lost", n)
	}
	g.Advance(3 * time.Minute)
	if n := g.sessions("default"); n != 1 {
		t.Errorf("%d sessions counted, want 1", n)
	}
	if n := g.Metric("pinwheel_drift_repaired_total.pool.default"); n != 1 {
		t.Errorf("%d repairs counted, want 1", n)
	}
	if r := g.on(0, turnOf("lost")); r.Status != 200 || r.reason != "placed" {
		t.Errorf("the session comes again: %d %s", r.Status, r.reason)
	}
}

// vllm-project/router#197, as reported: fifteen replicas, 20 requests running on one
// of them under cache_aware, ten ticks of the repair, then 20 sessions that share its
// prompt. Its load still counts, so they go elsewhere.
func TestRepairsLeaveTheLoadOfRunningRequests(t *testing.T) {
	const hot = "10.0.0.1:8000"
	const thresholds = `,"cache_aware":{"cache_threshold":0.5,"balance_abs_threshold":4,"balance_rel_threshold":1.1}`
	config := func(others string) string {
		list := []any{hot}
		for _, m := range addresses(15)[1:] {
			list = append(list, map[string]any{"address": m.Address, "state": others})
		}
		return configJSON(map[string]any{"replicas": list}) + thresholds
	}
	g := startCacheAware(t, 2, config("draining"))
	prompt := text(1, 4000)
	var running []*hostsim.Stream
	for i := range 20 {
		id := fmt.Sprint("hot", i)
		if r := g.do(asks(id, prompt)); r.replica != hot {
			t.Fatalf("%s on %s", id, r.replica)
		}
		running = append(running, g.begin(i%2, id))
	}
	if err := g.reconfigure(config("active") + named("cache_aware")); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		g.Advance(time.Minute)
	}
	if open, inflight := g.open()[hot], g.gauge("inflight", hot); open != 20 || inflight != 20 {
		t.Errorf("after ten repairs %d sessions and %d running requests, want 20 each", open, inflight)
	}
	for i := range 20 {
		if r := g.do(asks(fmt.Sprint("new", i), prompt)); r.replica == hot || r.reason != "placed" {
			t.Errorf("session %d: %s on %s", i, r.reason, r.replica)
		}
	}
	for address, n := range g.open() {
		if want := 10; address != hot && n > want {
			t.Errorf("%s has %d of 20 sessions", address, n)
		}
	}
	for _, s := range running {
		g.end(s, hostsim.EndNormal)
	}
	g.Advance(2 * time.Minute)
	g.mustRun(0)
	if n := g.Metric("pinwheel_drift_repaired_total.pool.default"); n != 0 {
		t.Errorf("%d repairs of what was right", n)
	}
}
