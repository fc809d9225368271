package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The configuration's stats_tags turn the plugin's names into labels.
func TestPrometheusLabels(t *testing.T) {
	each(t, userFile, func(t *testing.T, g *gateway) {
		ids := newIDs(3)
		g.turns(t, ids, "placed")
		g.turns(t, ids, "pinned")
		g.turn(t, "", "keyless")
		g.release(t, ids[0])
		g.waitOpen(t, 0, 1, 1)
		page, err := g.envoy.Admin.Get(t.Context(), "/stats/prometheus")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			`pinwheel_decisions_total{policy="sticky_least_loaded",pool="default",reason="placed"}`,
			`pinwheel_decisions_total{policy="sticky_least_loaded",pool="default",reason="pinned"}`,
			`pinwheel_decisions_total{policy="sticky_least_loaded",pool="default",reason="keyless"}`,
			`pinwheel_placements_total{pool="default"}`,
			`pinwheel_released_total{pool="default"}`,
		}
		for _, r := range g.replicas {
			want = append(want, fmt.Sprintf(`pinwheel_sessions{pool="default",replica="%s"}`, r.Addr))
			want = append(want, fmt.Sprintf(`pinwheel_inflight{pool="default",replica="%s"}`, r.Addr))
		}
		series := map[string]bool{}
		for line := range strings.Lines(page) {
			name, labels, ok := strings.Cut(strings.SplitN(line, "} ", 2)[0], "{")
			if !ok || !strings.HasPrefix(name, "pinwheel_") {
				continue
			}
			series[name+"{"+sortLabels(labels)+"}"] = true
			if strings.Contains(name, "default") || strings.Contains(name, "127_0_0_1") {
				t.Errorf("%s carries a label in its name", name)
			}
		}
		for _, w := range want {
			if !series[w] {
				t.Errorf("no series %s", w)
			}
		}
		if t.Failed() {
			for s := range series {
				t.Log(s)
			}
		}
	})
}

// sortLabels brings `a="x",b="y"` into order of the names, and so undoes
// whatever order the page uses.
func sortLabels(text string) string {
	labels := strings.Split(text, ",")
	slices.Sort(labels)
	return strings.Join(labels, ",")
}
