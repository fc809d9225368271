package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// claimsOf are the ways in which a client may try to name a host itself.
func claimsOf(addr string) (claims [][]string) {
	for _, v := range []string{addr, coded(addr), addr + "," + addr} {
		for _, name := range []string{targetHeader, "X-Gateway-Destination-Endpoint", "x_gateway_destination_endpoint", "x-envoy-original-dst-host"} {
			claims = append(claims, []string{name, v})
		}
		claims = append(claims, []string{targetHeader, v, targetHeader, v}, []string{targetHeader, "", targetHeader, v})
	}
	return claims
}

// coded is the address as stateful_session reads it.
func coded(addr string) string { return base64.StdEncoding.EncodeToString([]byte(addr)) }

// A client that names a host steers nothing: not a session, and not a request on
// a route where the plugin is off, on which all three carriers would believe it.
// agentgateway/agentgateway#3144: a client sets the destination itself.
func TestCarriersBelieveNoClient(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(t *testing.T, k kind, g *gateway) {
		id := newID()
		home := g.turn(t, id, "placed").Served
		other := g.notAt(home)
		trap := openTrap(t)
		claims := append(claimsOf(other), claimsOf(trap.Addr)...)
		for _, claim := range claims {
			if r := g.turn(t, id, "pinned", claim...); r.Served != home {
				t.Errorf("a turn with %q went to %s, its session lives on %s", claim, r.Served, home)
			}
		}
		for _, claim := range claims {
			served := map[string]string{}
			for i := range 20 {
				r := g.askOff(t, claim...)
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

// What the strip at the door is for: where it is missing, clients steer on routes
// without the plugin, under ORIGINAL_DST to any address at all.
func TestCarriersWithoutTheDoor(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(t *testing.T, k kind, g *gateway) {
		defer g.alter(t, leaveOut("early_header_mutation_extensions:"), func(map[string]any) {})()
		id := newID()
		home := g.turn(t, id, "placed").Served
		other, trap := g.notAt(home), openTrap(t)
		claim := []string{targetHeader, other}
		if k == statefulSession {
			claim[1] = coded(other)
		}
		for range 10 {
			if r := g.turn(t, id, "pinned", claim...); r.Served != home { // the plugin overwrites it
				t.Errorf("a turn went to %s, its session lives on %s", r.Served, home)
			}
			if r := g.askOff(t, claim...); r.Served != other {
				t.Errorf("without the plugin and the door, %q: %s served", claim, r.Served)
			}
		}
		if k == statefulSession {
			claim[1] = coded(trap.Addr)
		} else {
			claim[1] = trap.Addr
		}
		if r := g.askOff(t, claim...); (r.Served == trap.Addr) != (k == originalDst) {
			t.Errorf("a client asked for an address of its own, %s served", r.Served)
		}
	})
}

// What the filter named silence is for.
func TestStatefulSessionTellsTheClient(t *testing.T) {
	t.Parallel()
	each(t, statefulSession, func(t *testing.T, g *gateway) {
		defer g.alter(t, leaveOut("- name: silence"), func(map[string]any) {})()
		r, err := g.client.send(t.Context(), http.MethodGet, offPath, nil)
		if err != nil || r.Status != 200 || r.Header.Get(targetHeader) != coded(r.Served) {
			t.Errorf("%s served, status %d, %s %q, %v; want its address", r.Served, r.Status, targetHeader, r.Header.Get(targetHeader), err)
		}
	})
}

// openTrap opens a replica that is in no list.
func openTrap(t *testing.T) *envoytest.Replica {
	t.Helper()
	trap, err := envoytest.OpenReplica("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trap.Close)
	return trap
}

// notAt returns a replica's address other than this one.
func (g *gateway) notAt(addr string) string {
	if g.replicas[0].Addr != addr {
		return g.replicas[0].Addr
	}
	return g.replicas[1].Addr
}

// askOff sends a request to the route without the plugin. A carrier tells the
// client nothing there unless the silence is taken away.
func (g *gateway) askOff(t *testing.T, header ...string) reply {
	t.Helper()
	r, err := g.client.send(t.Context(), http.MethodGet, offPath, nil, header...)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Header.Values(targetHeader); v != nil {
		t.Errorf("the client was told %s: %q", targetHeader, v)
	}
	return r
}
