package e2e

import (
	"encoding/base64"
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

func eachCarrier(t *testing.T, f func(*testing.T, kind, *gateway)) {
	t.Helper()
	for _, k := range carriers {
		t.Run(string(k), func(t *testing.T) {
			each(t, k, func(t *testing.T, g *gateway) { f(t, k, g) })
		})
	}
}

// Sessions stay over turns and threads, new ones and requests without a session
// spread, no header of ours is seen outside, and what the plugin hears of the
// host that served is what it named.
func TestCarriersKeepAndSpread(t *testing.T) {
	eachCarrier(t, func(t *testing.T, k kind, g *gateway) {
		before := g.quietCounts(t)
		homes := g.turns(t, newIDs(60), "placed")
		if got := g.spread(homes); !slices.Equal(got, []int{20, 20, 20}) {
			t.Errorf("sessions per replica %v, want 20/20/20", got)
		}
		for range 4 { // new connections: other threads
			g.client.http.CloseIdleConnections()
			g.stillPinned(t, homes)
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

// claimsOf are the ways in which a client may try to name a host itself.
func claimsOf(addr string) (claims [][]string) {
	coded := base64.StdEncoding.EncodeToString([]byte(addr))
	for _, v := range []string{addr, coded, addr + "," + addr} {
		for _, name := range []string{targetHeader, "X-Gateway-Destination-Endpoint", "x_gateway_destination_endpoint", "x-envoy-original-dst-host"} {
			claims = append(claims, []string{name, v})
		}
		claims = append(claims, []string{targetHeader, v, targetHeader, v}, []string{targetHeader, "", targetHeader, v})
	}
	return claims
}

// A client that names a host steers nothing: not a session, and not a request on
// a route where the plugin is off, on which all three carriers would believe it.
// agentgateway/agentgateway#3144: a client sets the destination itself.
func TestCarriersBelieveNoClient(t *testing.T) {
	eachCarrier(t, func(t *testing.T, k kind, g *gateway) {
		id := newID()
		home := g.turn(t, id, "placed").Served
		other := g.replicas[0].Addr
		if other == home {
			other = g.replicas[1].Addr
		}
		trap, err := envoytest.OpenReplica("127.0.0.1:0") // in no list at all
		if err != nil {
			t.Fatal(err)
		}
		defer trap.Close()
		claims := append(claimsOf(other), claimsOf(trap.Addr)...)
		for _, claim := range claims {
			if r := g.turn(t, id, "pinned", claim...); r.Served != home {
				t.Errorf("a turn with %q went to %s, its session lives on %s", claim, r.Served, home)
			}
		}
		for _, claim := range claims {
			served := map[string]string{}
			for i := range 20 {
				r, err := g.client.send(t.Context(), http.MethodGet, offPath, nil, claim...)
				if err != nil || r.Header.Values(targetHeader) != nil {
					t.Fatalf("without the plugin, %q: headers %v, %v", claim, r.Header, err)
				}
				if k == originalDst {
					if r.Status != 503 || r.Served != "" {
						t.Fatalf("without the plugin, %q: status %d from %q, want Envoy's 503", claim, r.Status, r.Served)
					}
					break
				}
				served[fmt.Sprint(i)] = r.Served
			}
			// Three replicas at random: all twenty on one is a chance of 1 in 10^9.
			if got := g.spread(served); k != originalDst && slices.Max(got) == 20 {
				t.Errorf("without the plugin, %q: all went to one replica, %v", claim, got)
			}
		}
		if n := len(trap.Requests()); n != 0 {
			t.Errorf("clients reached an address of their own %d times: %v", n, trap.Requests()[0])
		}
		g.nothingLeaks(t)
	})
}

// An address that the plugin alone knows: ORIGINAL_DST goes there, which is what
// it is for. (TestAddressThatOneSideAloneKnows has the other two.)
func TestOriginalDstNeedsNoList(t *testing.T) {
	each(t, originalDst, func(t *testing.T, g *gateway) {
		fourth, err := envoytest.OpenReplica("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer fourth.Close()
		before := g.quietCounts(t)
		g.update(t, func(c map[string]any) { c["replicas"] = []string{g.replicas[0].Addr, fourth.Addr} })
		defer g.update(t, func(map[string]any) {})
		homes := g.turns(t, newIDs(10), "placed")
		for range 2 {
			for id, addr := range g.turns(t, keys(homes), "pinned") {
				if addr != homes[id] {
					t.Errorf("session %s moved from %s to %s", id, homes[id], addr)
				}
			}
		}
		if a, b := len(g.replicas[0].Requests()), len(fourth.Requests()); a != 15 || b != 15 {
			t.Errorf("%d and %d requests, want 15 each", a, b)
		}
		g.waitCount(t, before, statDecisions+"pinned", 20)
		g.waitCount(t, before, statServedElsewhere, 0)
		g.release(t, keys(homes)...)
	})
}

// A list is not an address: with spares nobody is reached.
func TestOriginalDstTakesOneAddress(t *testing.T) {
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
