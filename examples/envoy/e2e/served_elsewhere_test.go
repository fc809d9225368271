package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The README's word on addresses that one side alone knows: the plugin's own one
// gets sessions on paper only, and the operator is told; the cluster's own one
// gets none. And no client is refused for it (envoyproxy/envoy#42686).
func TestAddressThatOneSideAloneKnows(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{updatable, statefulSession} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			each(t, k, onPaperOnly)
		})
	}
}

func onPaperOnly(t *testing.T, g *gateway) {
	closed, err := envoytest.OpenReplica("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	unknown, known := closed.Addr, g.replicas[0].Addr
	g.update(t, func(c map[string]any) { c["replicas"] = []string{known, unknown} })
	defer g.update(t, func(map[string]any) {})
	before, mark := g.quietCounts(t), g.envoy.Log.Len()

	ids := newIDs(4)
	for _, id := range ids { // one by one: two for each address
		g.turn(t, id, "placed")
	}
	until(t, "two open sessions on each of the plugin's addresses, none on the others", func() (bool, string) {
		now := g.counts(t)
		got := []uint64{now[statSessions+known], now[statSessions+unknown], now[statSessions+g.replicas[1].Addr], now[statSessions+g.replicas[2].Addr]}
		return slices.Equal(got, []uint64{2, 2, 0, 0}), strings.Join(keys(now), " ")
	})
	// A worker looks at one response a tick; half of these have the unknown address.
	until(t, statServedElsewhere+" to rise", func() (bool, string) {
		g.turns(t, ids, "pinned")
		return g.counts(t)[statServedElsewhere] > before[statServedElsewhere], "no rise"
	})
	if log := g.envoy.Log.Since(mark); !strings.Contains(log, "named "+unknown+", and ") {
		t.Errorf("no line about %s in Envoy's log:\n%s", unknown, tail(log, 20))
	}
	g.release(t, ids...)
}
