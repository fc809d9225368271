package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// A replica that only the plugin's configuration has: Envoy passes the name over
// and balances at random, and every decision looks right.
func TestAHostThatTheGatewayDoesNotKnowIsTold(t *testing.T) {
	g := startGateway(t, 2, `"replicas":["10.0.0.1:8000"]`)
	from := func(served string) result {
		r := turnOf("s")
		r.Upstream = served
		res := result{Result: g.Do(0, r)}
		if got := res.Response.Value("x-pinwheel-replica"); got != served {
			t.Errorf("served by %q, told the client %q", served, got)
		}
		return res
	}
	from("10.0.0.1:8000")
	g.Advance(2 * tick)
	const counter = "pinwheel_errors_total.kind.served_elsewhere"
	if n := g.Metric(counter); n != 0 {
		t.Errorf("%d responses from elsewhere, want none", n)
	}
	for range 5 {
		from("10.9.9.9:8000")
		g.Advance(tick)
	}
	if n := g.Metric(counter); n != 5 {
		t.Errorf("%d responses from elsewhere, want 5", n)
	}
	told := func() (n int) {
		for _, m := range g.Messages(hostsim.LogWarn) {
			if strings.Contains(m, "named 10.0.0.1:8000, and 10.9.9.9:8000 served") {
				n++
			}
		}
		return n
	}
	if n := told(); n != 1 {
		t.Errorf("%d lines, want one a minute", n)
	}
	g.Advance(time.Minute)
	from("10.9.9.9:8000")
	if n := told(); n != 2 {
		t.Errorf("%d lines after another minute, want 2", n)
	}
}

// A response counts once a tick, with debug headers and without.
func TestResponsesAreSampled(t *testing.T) {
	for _, debug := range []string{"true", "false"} {
		g := startGateway(t, 2, `"replicas":["10.0.0.1:8000"]`)
		if err := g.Reconfigure([]byte(`{"replicas":["10.0.0.1:8000"],"debug_headers":` + debug + `}`)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for range 10 {
				r := turnOf("s")
				r.Upstream = "10.9.9.9:8000"
				g.Do(0, r)
			}
			g.Advance(tick)
		}
		if n := g.Metric("pinwheel_errors_total.kind.served_elsewhere"); n != 3 {
			t.Errorf("debug headers %s: %d responses looked at in 3 ticks, want 3", debug, n)
		}
	}
}

// The gateway's own 503 names the last host that it tried: nobody served.
func TestALocalReplyIsNotServedElsewhere(t *testing.T) {
	g := startGateway(t, 2, `"replicas":["10.0.0.1:8000"]`)
	s := g.Worker(0).NewStream()
	if _, err := s.RequestHeaders(turnHeaders("s"), true); err != nil {
		t.Fatal(err)
	}
	s.SetProperty("upstream.address", []byte("10.9.9.9:8000"))
	s.SetProperty("response.code_details", []byte("upstream_reset_before_response_started"))
	if _, err := s.ResponseHeaders(hostsim.Headers{{":status", "503"}}, true); err != nil {
		t.Fatal(err)
	}
	if got := s.Headers(hostsim.MapResponseHeaders).Value("x-pinwheel-replica"); got != "10.0.0.1:8000" {
		t.Errorf("told the client %q, want the host that was named", got)
	}
	if err := s.End(hostsim.EndNormal); err != nil {
		t.Fatal(err)
	}
	g.Advance(2 * tick)
	if n := g.Metric("pinwheel_errors_total.kind.served_elsewhere"); n != 0 {
		t.Errorf("%d responses from elsewhere, want none", n)
	}
}

// envoyproxy/envoy#42686: two gateways, or the two ends of one, have different lists
// of replicas for some seconds. The pin stays while the gateway cannot send there, so
// that nobody fights over it, no client is refused, and the session is where it was
// when the lists agree.
func TestAGatewayWhoseListLagsMovesNobody(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	homes := map[string]string{}
	for i := range 6 {
		id := fmt.Sprint("s", i)
		homes[id] = g.turn(id).replica
	}
	const unknown, known = "10.0.0.1:8000", "10.0.0.2:8000"
	for second := range 5 {
		for id, home := range homes {
			r := turnOf(id)
			r.Upstream = known
			got := result{Result: g.Do(second%2, r)}
			first, _, _ := strings.Cut(got.Request.Value(targetHeader), ",")
			if reason := got.Response.Value("x-pinwheel-reason"); got.Status != 200 || reason != "pinned" || first != home {
				t.Errorf("second %d: %s: %d %s, named %s, want pinned to %s", second, id, got.Status, reason, first, home)
			}
		}
		g.Advance(tick)
	}
	g.mustOpen(3, 3)
	for _, address := range []string{unknown, known} {
		if h := *g.health(address); h != (policy.Health{}) {
			t.Errorf("%s: %+v", address, h)
		}
	}
	for id, home := range homes {
		if r := g.turn(id); r.reason != "pinned" || r.replica != home {
			t.Errorf("%s afterwards: %s on %s, want pinned on %s", id, r.reason, r.replica, home)
		}
	}
}
