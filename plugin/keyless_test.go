package plugin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// replicas writes a "replicas" list of n addresses 10.0.0.1:8000 and on.
func replicas(n int) string {
	var list []string
	for _, m := range addresses(n) {
		list = append(list, `"`+m.Address+`"`)
	}
	return `"replicas":[` + strings.Join(list, ",") + `]`
}

// vllm-project/vime#98: 480 requests without a session header were one key and
// went to one replica of eight.
func TestKeylessTrafficSpreadsEvenly(t *testing.T) {
	for _, workers := range []int{2, 3} {
		for _, header := range [][][2]string{nil, {{"x-session-id", ""}}, {{"x-session-id", "  "}}} {
			g := startGateway(t, workers, replicas(8))
			got := map[string]int{}
			for range 480 {
				r := g.keyless(header...)
				if r.reason != "keyless" {
					t.Fatalf("reason %s", r.reason)
				}
				got[r.replica]++
			}
			for _, m := range addresses(8) {
				if got[m.Address] != 60 {
					t.Errorf("%d workers, header %q: %s got %d of 480 requests, want 60", workers, header, m.Address, got[m.Address])
				}
			}
			g.mustOpen(0, 0, 0, 0, 0, 0, 0, 0)
			if g.Advance(tick); g.decisions(policy.Keyless) != 480 {
				t.Errorf("%d keyless requests counted, want 480", g.decisions(policy.Keyless))
			}
		}
	}
}

// vllm-project/vime#98, the variant: half of the requests have a session.
func TestKeylessTrafficDisturbsNoSession(t *testing.T) {
	g := startGateway(t, 2, replicas(8))
	homes, keyless := map[string]string{}, map[string]int{}
	for i := range 80 {
		homes[fmt.Sprint("s", i)] = g.turn(fmt.Sprint("s", i)).replica
	}
	for i := range 160 {
		id := fmt.Sprint("s", i%80)
		if r := g.on(i%2, turnOf(id)); r.reason != "pinned" || r.replica != homes[id] {
			t.Errorf("%s: %s on %s, want pinned on %s", id, r.reason, r.replica, homes[id])
		}
		keyless[g.on(i%2, hosttest.Request{Path: "/v1/models"}).replica]++
	}
	g.mustOpen(10, 10, 10, 10, 10, 10, 10, 10)
	for _, m := range addresses(8) {
		if n := keyless[m.Address]; n != 20 {
			t.Errorf("%s got %d of 160 keyless requests, want 20", m.Address, n)
		}
	}
}
