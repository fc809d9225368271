package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// offPath is a route to the replicas on which the plugin is switched off.
const offPath = "/without-pinwheel"

var carriers = []kind{overrideHost, statefulSession, originalDst}

// eachCarrier runs f on all of them at once, on every Envoy version.
func eachCarrier(t *testing.T, f func(*testing.T, kind, *gateway)) {
	t.Helper()
	for _, k := range carriers {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			each(t, k, func(t *testing.T, g *gateway) { f(t, k, g) })
		})
	}
}

// Sessions stay over turns and threads, new ones and requests without a session
// spread, no header of ours is seen outside, and what the plugin hears of the
// host that served is what it named.
func TestCarriersKeepAndSpread(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(t *testing.T, k kind, g *gateway) {
		before := g.quietCounts(t)
		homes := g.turns(t, newIDs(60), "placed")
		if got := g.spread(homes); !slices.Equal(got, []int{20, 20, 20}) {
			t.Errorf("sessions per replica %v, want 20/20/20", got)
		}
		for range 4 { // new connections: other threads
			g.client.http.CloseIdleConnections()
			g.stay(t, homes)
		}
		g.waitOpen(t, 20, 20, 20)
		for i, r := range g.replicas {
			if n := len(r.Requests()); n != 100 {
				t.Errorf("replica %d saw %d requests, want 100", i, n)
			}
		}
		served := map[string]string{}
		conn := g.dial(t)
		for i := range 30 {
			r := conn.get(t)
			g.expect(t, r, "keyless")
			served[fmt.Sprint(i)] = r.Served
		}
		if got := g.spread(served); !slices.Equal(got, []int{10, 10, 10}) {
			t.Errorf("requests without a session per replica %v, want 10/10/10", got)
		}
		g.waitCount(t, before, statDecisions+"pinned", 240)
		g.waitCount(t, before, statServedElsewhere, 0)
		g.nothingLeaks(t)
	})
}

// An address that the plugin alone knows: ORIGINAL_DST goes there, which is what
// it is for. Envoy's own list is of those asked so far: nothing to discover
// replicas from. (TestAddressThatOneSideAloneKnows has the other carriers.)
func TestOriginalDstNeedsNoList(t *testing.T) {
	t.Parallel()
	each(t, originalDst, func(t *testing.T, g *gateway) {
		fourth := openTrap(t)
		if state, ok := g.endpointStates(t)[fourth.Addr]; ok {
			t.Errorf("Envoy knew the address before it was named: %s", state)
		}
		before := g.quietCounts(t)
		g.update(t, func(c map[string]any) { c["replicas"] = []string{g.replicas[0].Addr, fourth.Addr} })
		defer g.update(t, func(map[string]any) {})
		homes := g.turns(t, newIDs(10), "placed")
		for range 2 {
			g.stay(t, homes)
		}
		if a, b := len(g.replicas[0].Requests()), len(fourth.Requests()); a != 15 || b != 15 {
			t.Errorf("%d and %d requests, want 15 each", a, b)
		}
		g.waitCount(t, before, statDecisions+"pinned", 20)
		g.waitCount(t, before, statServedElsewhere, 0)
		if _, ok := g.endpointStates(t)[fourth.Addr]; !ok {
			t.Error("Envoy's list lacks an address that has been asked")
		}
		g.release(t, keys(homes)...)
	})
}

// What strict is: a named host that the cluster lacks is a 503
// (envoyproxy/envoy#42686: on a gateway whose list of replicas lags). The example is
// not strict, and TestAddressThatOneSideAloneKnows shows the same without a 503.
func TestStatefulSessionStrict(t *testing.T) {
	t.Parallel()
	each(t, statefulSession, func(t *testing.T, g *gateway) {
		unknown := openTrap(t).Addr
		strict := func(b envoytest.Bootstrap) (envoytest.Bootstrap, error) {
			return envoytest.Bootstrap(strings.Replace(string(b), "strict: false", "strict: true", 1)), nil
		}
		defer g.alter(t, strict, func(c map[string]any) { c["replicas"] = []string{g.replicas[0].Addr, unknown} })()
		served := map[string]int{}
		ids := newIDs(8)
		for _, id := range ids {
			r := g.try(t, id)
			served[fmt.Sprint(r.Status, r.Served)]++
		}
		if len(served) != 2 || served["503"] != 4 || served["200"+g.replicas[0].Addr] != 4 {
			t.Errorf("status and host %v, want 503 for four sessions and the known replica for four", served)
		}
		g.release(t, ids...)
	})
}

// A list is not an address: with spares nobody is reached.
func TestOriginalDstTakesOneAddress(t *testing.T) {
	t.Parallel()
	each(t, originalDst, func(t *testing.T, g *gateway) {
		g.update(t, func(c map[string]any) { c["target"] = map[string]any{"spares": 1} })
		defer g.update(t, func(map[string]any) {})
		for range 4 {
			r, err := g.client.send(t.Context(), http.MethodGet, chatPath, nil)
			if err != nil || r.Status != 503 || r.Served != "" || !strings.Contains(r.Body, "no healthy upstream") {
				t.Errorf("status %d from %q, %q, %v; want Envoy's 503", r.Status, r.Served, r.Body, err)
			}
		}
	})
}

// Where the plugin names nobody, the gateway chooses, if it can.
func TestCarriersWithoutAName(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(t *testing.T, k kind, g *gateway) {
		g.update(t, func(c map[string]any) { c["replicas"] = []string{} })
		defer g.update(t, func(map[string]any) {})
		for range 6 {
			r := g.try(t, newID())
			if want := map[bool]int{true: 503, false: 200}[k == originalDst]; r.Status != want || r.Reason != "no_replica" || (r.Served == "") != (k == originalDst) {
				t.Errorf("status %d from %q, reason %q", r.Status, r.Served, r.Reason)
			}
		}
	})
}
