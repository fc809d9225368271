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
