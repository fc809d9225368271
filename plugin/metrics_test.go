package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// poolMetric reads a counter of the default pool.
func (g *gateway) poolMetric(name string) int64 {
	return g.Metric("pinwheel_" + name + ".pool.default")
}

func TestCountersAreExact(t *testing.T) {
	g := startGateway(t, 3, threeReplicas+`,"session":{"max_sessions":4,"idle_timeout":"1m"}`)
	want, requests := map[string]int64{}, int64(0)
	turn := func(id string) {
		r := g.turn(id)
		want[r.reason]++
		requests++
	}
	for i := range 30 {
		turn(fmt.Sprint("s", i%7)) // four are pinned, three find the table full
		turn("")
		turn(strings.Repeat("x", 257))
	}
	g.release("s0")
	turn("s0")
	g.release("s0")
	g.release("s0")
	if err := g.reconfigure(`"replicas":["10.0.0.1:8000",{"address":"10.0.0.2:8000","state":"unhealthy"}],"session":{"max_sessions":4,"idle_timeout":"1m"}`); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		turn(fmt.Sprint("s", i))
	}
	for range 100 {
		g.Advance(tick)
	}
	var sum int64
	for i := range policy.NumReasons {
		reason := policy.Reason(i)
		if got := g.decisions(reason); got != want[reason.String()] {
			t.Errorf("%s: %d counted, clients saw %d", reason, got, want[reason.String()])
		} else {
			sum += got
		}
	}
	if sum != requests {
		t.Errorf("decisions sum to %d, there were %d requests", sum, requests)
	}
	for _, reason := range []string{"pinned", "placed", "keyless", "oversized", "table_full", "failover_unhealthy", "failover_removed"} {
		if want[reason] == 0 {
			t.Errorf("the traffic had no %s", reason)
		}
	}
	moved := int64(0)
	for _, reason := range []string{"failover_unhealthy", "failover_removed"} {
		n := g.Metric("pinwheel_failovers_total.pool.default.reason." + reason)
		if moved += n; n != want[reason] {
			t.Errorf("failovers for %s: %d, want %d", reason, n, want[reason])
		}
	}
	for name, n := range map[string]int64{
		"placements_total": want["placed"] + moved, "released_total": 2,
		"expired_total": 4, "drift_repaired_total": 0,
	} {
		if got := g.poolMetric(name); got != n {
			t.Errorf("%s: %d, want %d", name, got, n)
		}
	}
}

// Without a member there is no target, and the gateway decides; each such request
// counts, with a session and without.
func TestRequestsWithoutAReplicaAreCounted(t *testing.T) {
	for _, name := range policyNames {
		g := startGateway(t, 2, `"replicas":[]`+named(name))
		for i := range 6 {
			if r := g.turn(fmt.Sprint("s", i%2)); r.Status != 200 || r.reason != "no_replica" || len(r.Request.Values(targetHeader)) != 0 {
				t.Errorf("%s: %d %s, target %q", name, r.Status, r.reason, r.target)
			}
			if r := g.keyless(); r.Status != 200 || r.reason != "no_replica" || len(r.Request.Values(targetHeader)) != 0 {
				t.Errorf("%s, keyless: %d %s, target %q", name, r.Status, r.reason, r.target)
			}
		}
		g.Advance(2 * tick)
		if n := g.decided(name, policy.NoReplica); n != 12 {
			t.Errorf("%s: %d counted, want 12", name, n)
		}
		if n := g.sessions("default"); n != 0 {
			t.Errorf("%s: %d sessions", name, n)
		}
	}
}

func TestGaugesAreExact(t *testing.T) {
	g := startGateway(t, 3, threeReplicas)
	var running []*hostsim.Stream
	for i := range 31 {
		running = append(running, g.begin(i%3, fmt.Sprint("s", i)))
	}
	mustShow := func(when string, want map[string][2]int64) {
		t.Helper()
		g.Advance(2 * tick)
		for address, n := range want {
			if got := [2]int64{g.gauge("sessions", address), g.gauge("inflight", address)}; got != n {
				t.Errorf("%s: %s shows %d sessions and %d requests, want %v", when, address, got[0], got[1], n)
			}
		}
	}
	last := replicaOf(running[30])
	all := func(sessions, inflight int64) map[string][2]int64 {
		m := map[string][2]int64{}
		for _, a := range addresses(3) {
			m[a.Address] = [2]int64{sessions, inflight}
		}
		m[last] = [2]int64{m[last][0] + 1, m[last][1] + 1}
		return m
	}
	mustShow("31 turns run", all(10, 10))
	gone := "10.0.0.3:8000"
	if err := g.reconfigure(twoReplicas); err != nil {
		t.Fatal(err)
	}
	mustShow("a replica was removed, its sessions have not come back", all(10, 10))
	for i, s := range running {
		g.end(s, hostsim.EndNormal)
		if i%2 == 0 {
			g.turn(fmt.Sprint("s", i))
		} else {
			g.release(fmt.Sprint("s", i))
		}
	}
	mustShow("all sessions of the removed replica have moved or ended", map[string][2]int64{
		gone: {0, 0}, "10.0.0.1:8000": {8, 0}, "10.0.0.2:8000": {8, 0},
	})
	if n := len(g.record("default").List); n != 2 {
		t.Errorf("%d replicas listed, the removed one has nothing left", n)
	}
}

// A gauge is the last thing that shows of a removed replica: it must show zero
// even if the last session leaves while the leader's tick runs, ahead of any of
// its accesses to the record.
func TestAForgottenReplicaShowsZero(t *testing.T) {
	for access := 0; ; access++ {
		g := startGateway(t, 2, twoReplicas)
		home := map[string]string{g.turn("a").replica: "a", g.turn("b").replica: "b"}
		const gone, rest = "10.0.0.2:8000", "10.0.0.1:8000"
		if err := g.reconfigure(`"replicas":["` + rest + `"]`); err != nil {
			t.Fatal(err)
		}
		g.Drain()
		g.Advance(5 * tick)
		if n := g.gauge("sessions", gone); n != 1 {
			t.Fatalf("%d sessions on the removed replica, want 1", n)
		}
		seen := 0
		g.OnSharedData(func(w int, _ hostsim.SharedOp, key string) {
			if w != hostsim.MainThread || key != keyRoot+"default/replicas" {
				return
			}
			if seen++; seen == access+1 {
				if r := g.turn(home[gone]); r.reason != "failover_removed" {
					t.Errorf("the last session is %s", r.reason)
				}
			}
		})
		g.Advance(tick)
		g.OnSharedData(nil)
		if seen <= access {
			if access < 2 {
				t.Errorf("a tick has %d accesses: the test is void", seen)
			}
			return
		}
		g.Advance(3 * tick)
		if n := g.gauge("sessions", gone); n != 0 {
			t.Errorf("%d sessions shown on a replica that is gone, when the last left before access %d", n, access)
		}
		if n := len(g.record("default").List); n != 1 {
			t.Errorf("%d replicas listed, want 1, when the last left before access %d", n, access)
		}
	}
}

const marker = "MARK-7f3a"

// Names are bounded and ids stay with the client: no id in a metric, a log line,
// a response or shared data, whatever it is and however it ended.
func TestIDsAppearNowhere(t *testing.T) {
	g := startWith(t, hosttest.Options{Workers: 2, Adjust: func(c *hostsim.Config) { c.LogLevel = hostsim.LogTrace }},
		twoReplicas+`,"session":{"max_sessions":8,"scope_headers":["x-tenant-id"]},"decision_log":{"enabled":true}`)
	seen := func(where, text string) {
		t.Helper()
		if strings.Contains(text, marker) || strings.Contains(text, strings.ToLower(marker)) {
			t.Errorf("%s holds a session id: %.200q", where, text)
		}
	}
	metrics := 0
	for round := range 4 {
		for i := range 20 {
			for _, id := range []string{fmt.Sprint(marker, round, i), fmt.Sprint("\xff", marker, i), marker + strings.Repeat("x", 250)} {
				r := g.turn(id, [2]string{"x-tenant-id", marker})
				seen("a response", fmt.Sprint(r.Response, r.ResponseBody))
				seen("the target header", r.target)
			}
			g.released(post("/finish_session?session_id="+fmt.Sprint(marker, round, i)), 200)
			r := g.do(hosttest.Request{Method: "GET", Path: "/finish_session?session_id=" + marker})
			seen("a refusal", fmt.Sprint(r.Response, r.ResponseBody))
		}
		g.Advance(3 * tick)
		switch n := len(g.Metrics()); {
		case round == 1: // by now every reason has come up
			metrics = n
		case round > 1 && n != metrics:
			t.Errorf("%d metrics, there were %d with fewer sessions", n, metrics)
		}
	}
	for _, m := range g.Metrics() {
		seen("a metric", m.Name)
	}
	if len(g.Logs()) == 0 {
		t.Error("nothing was logged: the check is void")
	}
	for _, e := range g.Logs() {
		seen("the log", e.Message)
	}
	for _, key := range g.SharedData().Keys() {
		value, _, _ := g.SharedData().Get(key)
		seen("shared data", key+string(value))
	}
	if g.Metric("pinwheel_errors_total.kind.panic") != 0 {
		t.Error("panics")
	}
}

// Every counter is there from the first tick on, also before it has counted.
func TestMetricNamesAreWhatWeDocument(t *testing.T) {
	const pool = ".pool.default"
	want := map[string]bool{}
	for _, m := range addresses(2) {
		for _, name := range []string{"sessions", "inflight", "cooling"} {
			want["gauge pinwheel_"+name+pool+".replica."+m.Address] = true
		}
	}
	for _, reason := range []string{"pinned", "placed", "failover_unhealthy", "failover_removed", "expired", "keyless",
		"oversized", "table_full", "no_replica", "error"} {
		want["counter pinwheel_decisions_total"+pool+".policy.sticky_least_loaded.reason."+reason] = true
	}
	for _, reason := range []string{"failover_unhealthy", "failover_removed", "followed"} {
		want["counter pinwheel_failovers_total"+pool+".reason."+reason] = true
	}
	for _, name := range []string{"placements", "expired", "released", "fallbacks", "panics", "cas_retries", "drift_repaired"} {
		want["counter pinwheel_"+name+"_total"+pool] = true
	}
	for _, kind := range faultNames {
		want["counter pinwheel_errors_total.kind."+kind] = true
	}
	g := startGateway(t, 2, twoReplicas)
	mustHave := func(when string) {
		t.Helper()
		g.Advance(2 * tick)
		got := map[string]bool{}
		for _, m := range g.Metrics() {
			got[m.Kind.String()+" "+m.Name] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: metrics\n%q\nwant\n%q", when, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
	mustHave("before any traffic")
	g.turn("a")
	g.turn("")
	g.release("a")
	mustHave("after")
}
