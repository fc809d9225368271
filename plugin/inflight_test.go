package plugin

import (
	"fmt"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// A worker that crashed never calls back: what it was serving must not count for
// ever.
func TestACrashedWorkersRequestsDisappear(t *testing.T) {
	g := startWith(t, hosttest.Options{Workers: 3, AllowTraps: true}, threeReplicas)
	for i := range 6 {
		g.begin(0, fmt.Sprint("gone", i))
		g.begin(1, fmt.Sprint("kept", i))
	}
	g.Advance(2 * tick)
	g.mustRun(12)
	g.crash(g.Worker(0), func() { g.Do(0, turnOf("poison")) })
	g.Advance(6 * tick) // three for the slot, three for the lease if that was the worker's
	g.mustRun(6)
	// Another worker that needs a slot takes the dead one's.
	g.begin(2, "kept0")
	g.Advance(2 * tick)
	g.mustRun(7)
	if _, _, ok := g.SharedData().Get(keyRoot + "default/w/2"); ok {
		t.Error("a third slot was made while a dead worker's was free")
	}
}

// BerriAI/litellm#40401: counts expired after ten minutes while the work went on, its
// end was -1, and that replica got every session from then on. One session a minute
// follows, three turns each.
func TestRunningRequestsDoNotExpire(t *testing.T) {
	for _, name := range policyNames {
		g := startGateway(t, 2, replicas(4)+named(name)+`,"session":{"idle_timeout":"10m"}`)
		s := g.begin(0, "")
		g.Advance(11 * time.Minute)
		g.mustRun(1)
		g.end(s, hostsim.EndNormal)
		g.Advance(2 * tick)
		g.mustRun(0)
		got := map[string]int{}
		for i := range 35 {
			for range 3 {
				s := g.begin(i%2, fmt.Sprint("s", i))
				got[replicaOf(s)]++
				g.Advance(20 * time.Second)
				g.mustRun(1)
				g.end(s, hostsim.EndNormal)
			}
		}
		// Nine sessions of three turns on a replica, or eight; by chance up to half as many again.
		least, most := 24, 27
		switch name {
		case "consistent_hash", "random", "power_of_two":
			least, most = 10, 45
		}
		for _, m := range addresses(4) {
			if n := got[m.Address]; n < least || n > most {
				t.Errorf("%s: %s got %d of 105 turns, want %d to %d", name, m.Address, n, least, most)
			}
		}
		g.Advance(2 * tick)
		g.mustRun(0)
		if n := g.errors(faultCount); n != 0 {
			t.Errorf("%s: %d counts would have gone below zero", name, n)
		}
	}
}

// vllm-project/aibrix#2421: a replica went and came back under its old address
// while requests ran on it, and their end took its count below zero.
func TestARemovedReplicasRequestsAreItsOwn(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	var old []*hostsim.Stream
	for range 4 {
		old = append(old, g.begin(0, "a"))
	}
	home := replicaOf(old[0])
	without := `"replicas":["10.0.0.9:8000"]`
	for _, config := range []string{without, `"replicas":["` + home + `"]`} {
		if err := g.reconfigure(config); err != nil {
			t.Fatal(err)
		}
		g.Advance(4 * tick)
		if got := g.gauge("inflight", home); got != 4 {
			t.Errorf("%d requests running on %s, want 4", got, home)
		}
	}
	fresh := g.begin(1, "a")
	for i, s := range old {
		g.end(s, hostsim.EndNormal)
		g.Advance(2 * tick)
		if got, want := g.gauge("inflight", home), int64(4-i); got != want {
			t.Errorf("%d requests running on %s, want %d", got, home, want)
		}
	}
	g.end(fresh, hostsim.EndNormal)
	g.Advance(2 * tick)
	if got := g.gauge("inflight", home); got != 0 {
		t.Errorf("%d requests running on %s, want none", got, home)
	}
	if n := g.Metric("pinwheel_errors_total.kind.count_clamped"); n != 0 {
		t.Errorf("%d counts would have gone below zero", n)
	}
}

// A worker's count of running requests is bounded by replicas, whatever comes
// and goes.
func TestSlotsDoNotGrowWithReplicas(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	for i := range 30 {
		if err := g.reconfigure(fmt.Sprintf(`"replicas":["10.0.1.%d:8000"]`, i+1)); err != nil {
			t.Fatal(err)
		}
		g.Drain()
		g.turn("s")
		g.turn("")
		g.Advance(4 * tick)
	}
	for _, key := range g.SharedData().Keys() {
		if value, _, _ := g.SharedData().Get(key); len(key) > len(keyRoot+"default/w/") && key[:14] == keyRoot+"default/w/" && len(value) > slotHeader+2*slotCountBytes {
			t.Errorf("%s has %d bytes", key, len(value))
		}
	}
	if n := len(g.record("default").List); n > 2 {
		t.Errorf("%d replicas listed after 30 that came and went", n)
	}
}
