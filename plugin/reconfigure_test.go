package plugin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// haproxy/haproxy#842: a reload or another order of the list scrambled all pins.
func TestPinsSurviveUpdatesUnderTraffic(t *testing.T) {
	g := startGateway(t, 3, threeReplicas)
	homes := map[string]string{}
	for i := range 90 {
		homes[fmt.Sprint("s", i)] = g.turn(fmt.Sprint("s", i)).replica
	}
	for i, config := range []string{
		threeReplicas + `,"target":{"spares":1}`,
		`"replicas":["10.0.0.3:8000","10.0.0.1:8000","10.0.0.2:8000"]`,
		`"replicas":["10.0.0.2:8000",{"address":"10.0.0.3:8000","weight":3},"10.0.0.1:8000","10.0.0.4:8000"]`,
		`"replicas":["10.0.0.4:8000",{"address":"10.0.0.1:8000","state":"draining"},"10.0.0.2:8000","10.0.0.3:8000"]`,
		threeReplicas + `,"session":{"max_sessions":50000,"idle_timeout":"1h"}`,
	} {
		running := g.begin(i%3, "s1")
		if err := g.reconfigure(config); err != nil {
			t.Fatal(err)
		}
		g.Advance(tick)
		for id, home := range homes {
			if r := g.turn(id); r.Status != 200 || r.reason != "pinned" || r.replica != home {
				t.Fatalf("update %d: %s is %s on %s, want pinned on %s", i, id, r.reason, r.replica, home)
			}
		}
		if got := replicaOf(running); got != homes["s1"] {
			t.Errorf("update %d: a running turn went to %s, not to %s", i, got, homes["s1"])
		}
		g.end(running, hostsim.EndNormal)
	}
	g.Drain()
	g.Advance(3 * tick)
	g.mustRun(0)
	if n := g.sessions("default"); n != 90 {
		t.Errorf("%d sessions open, want 90", n)
	}
}

func TestAReplicaThatGoesLosesItsSessionsOnly(t *testing.T) {
	g := startGateway(t, 2, threeReplicas)
	homes := map[string]string{}
	for i := range 30 {
		homes[fmt.Sprint("s", i)] = g.turn(fmt.Sprint("s", i)).replica
	}
	for _, config := range []string{twoReplicas, threeReplicas} { // it comes back as a newcomer
		if err := g.reconfigure(config); err != nil {
			t.Fatal(err)
		}
		for id, home := range homes {
			r := g.turn(id)
			switch {
			case home == "10.0.0.3:8000" && r.reason == "failover_removed":
				homes[id] = r.replica
			case r.reason != "pinned" || r.replica != home:
				t.Errorf("%s is %s on %s, was on %s", id, r.reason, r.replica, home)
			}
		}
	}
	g.mustOpen(15, 15, 0)
}

// A refused configuration says in one line what is wrong and where; the old one
// stays.
func TestARefusedUpdateChangesNothing(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"session":{"headers":["x-sid"]}`)
	home := g.keyless([2]string{"x-sid", "s"}).replica
	before := g.record("default")
	for _, c := range []struct{ config, path string }{
		{`"replicas":["10.0.0.3:8000"],"session":{"idle_timout":"1h"}`, "session.idle_timout"},
		{`"replicas":["10.0.0.3:8000","nonsense"]`, "replicas[1]"},
		{`"replicas":["10.0.0.3:8000"],"policy":"sticky"`, "policy"},
		{`"replicas":["10.0.0.3:8000"],`, "line 1, column"},
	} {
		logged := len(g.Logs())
		err := g.reconfigure(c.config)
		if !errors.Is(err, hostsim.ErrRefused) {
			t.Errorf("%s: %v, want it refused", c.config, err)
		}
		if lines := g.Logs()[logged:]; len(lines) != 1 || strings.Contains(lines[0].Message, "\n") ||
			lines[0].Level != hostsim.LogCritical || !strings.Contains(lines[0].Message, c.path) {
			t.Errorf("%s: logged %v, want one line that names %s", c.config, lines, c.path)
		}
		for range g.Workers() {
			if r := g.keyless([2]string{"x-sid", "s"}); r.reason != "pinned" || r.replica != home {
				t.Errorf("%s: afterwards %s on %s, want pinned on %s", c.config, r.reason, r.replica, home)
			}
		}
		g.Advance(3 * tick)
	}
	if after := g.record("default"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("a refused configuration changed the record from %+v to %+v", before, after)
	}
}

// While an old configuration drains, both tick in the same VM, and old streams
// run on under the old one. The new one's membership must stay in force.
func TestASupersededConfigurationDoesNotInterfere(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"session":{"idle_timeout":"1m"}`)
	old := g.begin(0, "old")
	home := replicaOf(old)
	if err := g.reconfigure(threeReplicas + `,"session":{"idle_timeout":"2m"},"debug_headers":false`); err == nil {
		t.Fatal("a key given twice was taken")
	}
	if err := g.Reconfigure([]byte(`{` + threeReplicas + `,"session":{"idle_timeout":"2m"}}`)); err != nil {
		t.Fatal(err)
	}
	writes := map[string]int{}
	g.OnSharedData(func(_ int, op hostsim.SharedOp, key string) {
		if op == hostsim.SharedSet {
			writes[key]++
		}
	})
	g.Advance(5 * time.Minute)
	g.OnSharedData(nil)
	if n := writes[keyRoot+"default/replicas"]; n != 0 {
		t.Errorf("idle workers wrote the record %d times: the configurations fight", n)
	}
	r := g.record("default")
	if len(r.List) != 3 || r.List[2].Address != "10.0.0.3:8000" || r.List[2].State != policy.Active {
		t.Errorf("record %+v, want the new configuration's three replicas", r.List)
	}
	// The old stream still belongs to the old configuration, which has debug headers.
	if _, err := old.ResponseHeaders(hostsim.Headers{{":status", "200"}}, true); err != nil {
		t.Fatal(err)
	}
	if got := old.Headers(hostsim.MapResponseHeaders).Value("x-pinwheel-replica"); got != home {
		t.Errorf("debug header %q, want %q", got, home)
	}
	// Its pin lived for five minutes, though both timeouts are shorter.
	if got := g.Do(1, turnOf("old")); !strings.HasPrefix(got.Request.Value(targetHeader), home) {
		t.Errorf("a second turn went to %s, the first runs on %s", got.Request.Value(targetHeader), home)
	}
	if n := g.sessions("default"); n != 1 {
		t.Errorf("%d sessions open, want 1", n)
	}
	g.end(old, hostsim.EndNormal)
	g.Drain()
	g.Advance(5 * time.Minute)
	g.mustRun(0)
	g.mustOpen(0, 0, 0)
}

// An old configuration ticks until it has drained. If it kept the lease, its
// shorter timeout would end the new one's sessions.
func TestASupersededTimeoutEndsNoSession(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"session":{"idle_timeout":"1m"}`)
	g.Advance(3 * tick) // the old configuration takes the lease
	if err := g.reconfigure(twoReplicas + `,"session":{"idle_timeout":"2h"}`); err != nil {
		t.Fatal(err)
	}
	home := g.turn("s").replica
	g.Advance(5 * time.Minute)
	if r := g.turn("s"); r.reason != "pinned" || r.replica != home {
		t.Errorf("idle for 5 of 120 minutes: %s on %s, want pinned on %s", r.reason, r.replica, home)
	}
	g.Drain()
	g.Advance(3 * time.Hour)
	if n := g.sessions("default"); n != 0 {
		t.Errorf("%d sessions open after the new timeout, want none", n)
	}
}

// Every configuration of a VM keeps its own target header from clients.
func TestAnUpdateMayChangeTheTargetHeader(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	if err := g.Reconfigure([]byte(`{` + twoReplicas + `,"target":{"header":"x-host"}}`)); err != nil {
		t.Fatal(err)
	}
	r := g.Do(0, turnOf("s", [2]string{"x-host", "6.6.6.6:1"}))
	if got := r.Request.Values("x-host"); len(got) != 1 || !strings.HasPrefix(got[0], "10.0.0.") {
		t.Errorf("x-host %q", got)
	}
}

// haproxy/haproxy#842, the other inputs: 400 replicas become five. The sessions of
// those that stay move nowhere, the others are placed anew, evenly.
func TestScalingDownMovesTheLostOnly(t *testing.T) {
	g := startGateway(t, 3, replicas(200)[:len(replicas(200))-1]+","+strings.ReplaceAll(replicas(200), "10.0.0.", "10.0.1.")[len(`"replicas":[`):])
	if n := len(g.record("default").List); n != 400 {
		t.Fatalf("%d replicas", n)
	}
	homes := map[string]string{}
	for i := range 100 {
		homes[fmt.Sprint("s", i)] = g.turn(fmt.Sprint("s", i)).replica
	}
	stay := map[string]bool{}
	for i := range 5 {
		stay[homes[fmt.Sprint("s", 20*i)]] = true
	}
	var list []any
	for address := range stay {
		list = append(list, address)
	}
	if err := g.reconfigure(configJSON(map[string]any{"replicas": list})); err != nil {
		t.Fatal(err)
	}
	for id, home := range homes {
		r := g.turn(id)
		if stay[home] && (r.reason != "pinned" || r.replica != home) || !stay[home] && (r.reason != "failover_removed" || !stay[r.replica]) {
			t.Errorf("%s was on %s, is %s on %s", id, home, r.reason, r.replica)
		}
	}
	g.mustOpen(20, 20, 20, 20, 20)
}

// And a restart of the gateway: pins are gone with it. The hash orders replicas alike
// in every process, so consistent_hash finds the old homes again.
func TestARestartedGatewayHashesAlike(t *testing.T) {
	const config = `,"policy":"consistent_hash","consistent_hash":{"load_factor":0}`
	homes := map[string]string{}
	for round, list := range []string{threeReplicas, `"replicas":["10.0.0.3:8000","10.0.0.1:8000","10.0.0.2:8000"]`} {
		g := startGateway(t, 2, list+config)
		for i := range 100 {
			id := fmt.Sprint("s", i)
			if r := g.turn(id); round == 0 {
				homes[id] = r.replica
			} else if r.replica != homes[id] {
				t.Errorf("%s went from %s to %s", id, homes[id], r.replica)
			}
		}
	}
}
