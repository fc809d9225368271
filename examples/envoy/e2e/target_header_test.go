package e2e

import (
	"fmt"
	"slices"
	"testing"
)

const targetHeader = "x-gateway-destination-endpoint"

// A client that names the upstream host itself steers nothing, whether Envoy
// strips the header at the door or the plugin has to.
func TestClientCannotChooseReplica(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{userFile, bareDoor} {
		t.Run(string(k), func(t *testing.T) {
			each(t, k, steersNothing)
		})
	}
}

func steersNothing(t *testing.T, g *gateway) {
	id := newID()
	home := g.turn(t, id, "placed").Served
	other := g.replicas[0].Addr
	if other == home {
		other = g.replicas[1].Addr
	}
	admin := g.envoy.Admin.Addr
	claims := [][]string{
		{targetHeader, other},
		{"X-Gateway-Destination-Endpoint", other},
		{"X-GATEWAY-DESTINATION-ENDPOINT", other},
		{"x_gateway_destination_endpoint", other},
		{targetHeader, other + "," + other},
		{targetHeader, other, targetHeader, other},
		{targetHeader, "", targetHeader, other},
		{targetHeader, admin},
		{targetHeader, "vllm"},
		{targetHeader, "garbage, \xff"},
		{targetHeader, ""},
	}
	for _, claim := range claims {
		if r := g.turn(t, id, "pinned", claim...); r.Served != home {
			t.Errorf("a turn with %q went to %s, its session lives on %s", claim, r.Served, home)
		}
	}
	g.release(t, id)
	for _, claim := range claims {
		served := map[string]string{}
		ids := newIDs(6)
		for i, id := range ids {
			served[fmt.Sprint("new", i)] = g.turn(t, id, "placed", claim...).Served
		}
		if got := g.spread(served); !slices.Equal(got, []int{2, 2, 2}) {
			t.Errorf("new sessions with %q per replica %v, want 2/2/2", claim, got)
		}
		g.release(t, ids...)
		clear(served)
		conn := g.dial(t)
		for i := range 12 {
			var lines []string
			for j := 0; j < len(claim); j += 2 {
				lines = append(lines, claim[j]+": "+claim[j+1])
			}
			r := conn.get(t, lines...)
			g.expect(t, r, "keyless")
			served[fmt.Sprint("keyless", i)] = r.Served
		}
		if got := g.spread(served); !slices.Equal(got, []int{4, 4, 4}) {
			t.Errorf("keyless requests with %q per replica %v, want 4/4/4", claim, got)
		}
	}
	g.nothingLeaks(t)
}
