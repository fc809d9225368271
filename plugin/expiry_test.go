package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

func TestExpirySlides(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"session":{"idle_timeout":"1m"}`)
	home := g.turn("s").replica
	for i := range 20 { // ten minutes, never idle for one
		g.Advance(30 * time.Second)
		if r := g.turn("s"); r.reason != "pinned" || r.replica != home {
			t.Fatalf("turn %d: %s on %s, want pinned on %s", i, r.reason, r.replica, home)
		}
	}
	g.Advance(55 * time.Second)
	if n := g.sessions("default"); n != 1 {
		t.Errorf("expired early: %d sessions", n)
	}
	g.Advance(35 * time.Second)
	if n := g.sessions("default"); n != 0 {
		t.Errorf("%d sessions open 90 s after the last turn, want none", n)
	}
	if n := g.Metric("pinwheel_expired_total.pool.default"); n != 1 {
		t.Errorf("%d sessions counted as expired, want 1", n)
	}
}

// A session that comes back before the sweep has found it is expired all the same,
// and counted as that.
func TestExpiryIsCheckedAtTheTurn(t *testing.T) {
	clock := hostsim.NewVirtualClock()
	g := startWith(t, hosttest.Options{Workers: 2, Adjust: func(c *hostsim.Config) { c.Clock = clock }},
		twoReplicas+`,"session":{"idle_timeout":"1h"}`)
	g.turn("s")
	clock.Advance(time.Hour) // no tick runs
	if r := g.turn("s"); r.reason != "expired" {
		t.Errorf("a turn after the timeout is %s, want expired", r.reason)
	}
	if n := g.sessions("default"); n != 1 {
		t.Errorf("%d sessions open, want 1", n)
	}
	if g.Advance(2 * tick); g.Metric("pinwheel_expired_total.pool.default") != 1 {
		t.Errorf("%d sessions counted as expired, want 1", g.Metric("pinwheel_expired_total.pool.default"))
	}
}

// sweepers returns who read session shards in that time.
func (g *gateway) sweepers(d time.Duration) []int {
	seen := map[int]bool{}
	g.OnSharedData(func(w int, _ hostsim.SharedOp, key string) {
		if strings.HasPrefix(key, keyRoot+"default/s/") {
			seen[w] = true
		}
	})
	g.Advance(d)
	g.OnSharedData(nil)
	return slices.Sorted(maps.Keys(seen))
}

func TestOneWorkerSweepsAndAnotherFollows(t *testing.T) {
	g := startWith(t, hosttest.Options{Workers: 2, AllowTraps: true, Adjust: func(c *hostsim.Config) {
		c.FailurePolicy = hostsim.FailReload
	}}, twoReplicas+`,"session":{"idle_timeout":"1m"}`)
	for i := range 10 {
		g.turn(fmt.Sprint(i))
	}
	g.Advance(2 * tick)
	if who := g.sweepers(5 * tick); !slices.Equal(who, []int{hostsim.MainThread}) {
		t.Errorf("swept by %v, want the main thread, which has the time", who)
	}
	g.crash(g.Main(), func() { g.Advance(2 * tick) })
	g.Advance(6 * tick)
	first := g.sweepers(5 * tick)
	if len(first) != 1 || first[0] < 0 {
		t.Fatalf("after the main thread's VM died: swept by %v, want one worker", first)
	}
	g.crash(g.Worker(first[0]), func() { g.on(first[0], turnOf("poison")) })
	g.Advance(6 * tick)
	second := g.sweepers(5 * tick)
	if want := []int{1 - first[0]}; !slices.Equal(second, want) {
		t.Fatalf("after worker %d died too: swept by %v, want %v", first[0], second, want)
	}
	if g.Advance(2 * time.Minute); g.sessions("default") != 0 {
		t.Errorf("%d sessions open long after the timeout", g.sessions("default"))
	}
	// The dead one comes back at its next request and finds a leader.
	if r := g.on(first[0], turnOf("back")); r.Status != 200 || r.reason != "placed" {
		t.Errorf("reloaded worker: %d %s", r.Status, r.reason)
	}
	if who := g.sweepers(5 * tick); len(who) != 1 {
		t.Errorf("after the reload: swept by %v, want one worker", who)
	}
}

// Every session is gone a minute after it expired, whatever the size of the table
// and whichever configurations are draining.
func TestAMinuteSweepsEverything(t *testing.T) {
	for _, c := range []struct {
		session string
		timeout time.Duration
	}{
		{`{}`, 2 * time.Hour},
		{`{"max_sessions":100000,"idle_timeout":"2h"}`, 2 * time.Hour},
		{`{"max_sessions":1000000,"idle_timeout":"10m"}`, 10 * time.Minute},
		{`{"idle_timeout":"8s"}`, 8 * time.Second},
	} {
		clock := hostsim.NewVirtualClock()
		g := startWith(t, hosttest.Options{Workers: 2, Adjust: func(c *hostsim.Config) { c.Clock = clock }}, twoReplicas+`,"session":`+c.session)
		for _, config := range []string{"", `,"decision_log":{"level":"warn"}`} {
			if config != "" {
				if err := g.reconfigure(twoReplicas + `,"session":` + c.session + config); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 300 {
				g.turn(fmt.Sprint(i))
			}
			clock.Advance(c.timeout) // without ticks
			if n := g.sessions("default"); n != 300 {
				t.Fatalf("%d sessions before any sweep", n)
			}
			g.Advance(time.Minute)
			if n := g.sessions("default"); n != 0 {
				t.Errorf("session %s, configuration %q: %d of 300 sessions open a minute after they expired", c.session, config, n)
			}
		}
	}
}
