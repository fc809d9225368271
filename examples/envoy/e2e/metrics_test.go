package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The configuration's stats_tags turn the plugin's names into labels.
func TestPrometheusLabels(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		ids := newIDs(3)
		g.turns(t, ids, "placed")
		g.turns(t, ids, "pinned")
		g.turn(t, "", "keyless")
		g.release(t, ids[0])
		g.waitOpen(t, 0, 1, 1)
		var want []string
		for _, r := range g.replicas {
			want = append(want,
				fmt.Sprintf(`pinwheel_sessions{pool="default",replica="%s"}`, r.Addr),
				fmt.Sprintf(`pinwheel_inflight{pool="default",replica="%s"}`, r.Addr),
				fmt.Sprintf(`pinwheel_cooling{pool="default",replica="%s"}`, r.Addr))
		}
		want = append(want,
			`pinwheel_decisions_total{policy="sticky_least_loaded",pool="default",reason="placed"}`,
			`pinwheel_decisions_total{policy="sticky_least_loaded",pool="default",reason="pinned"}`,
			`pinwheel_decisions_total{policy="sticky_least_loaded",pool="default",reason="keyless"}`,
			`pinwheel_placements_total{pool="default"}`,
			`pinwheel_released_total{pool="default"}`)
		until(t, "all series on the Prometheus page", func() (bool, string) {
			series := g.prometheus(t)
			var missing []string
			for _, w := range want {
				if !slices.Contains(series, w) {
					missing = append(missing, w)
				}
			}
			return len(missing) == 0, fmt.Sprintf("no %s among\n%s", strings.Join(missing, ", "), strings.Join(series, "\n"))
		})
		for _, s := range g.prometheus(t) {
			if name, _, _ := strings.Cut(s, "{"); strings.Contains(name, "default") || strings.Contains(name, "127_0_0_1") {
				t.Errorf("%s carries a label in its name", s)
			}
		}
	})
}

// prometheus lists the plugin's series with their labels sorted by name.
func (g *gateway) prometheus(t *testing.T) (series []string) {
	t.Helper()
	page, err := g.envoy.Admin.Get(t.Context(), "/stats/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(page) {
		name, labels, ok := strings.Cut(strings.SplitN(line, "} ", 2)[0], "{")
		if ok && strings.HasPrefix(name, "pinwheel_") {
			series = append(series, name+"{"+sortLabels(labels)+"}")
		}
	}
	return series
}

// sortLabels brings `a="x",b="y"` into order of the names, and so undoes
// whatever order the page uses.
func sortLabels(text string) string {
	labels := strings.Split(text, ",")
	slices.Sort(labels)
	return strings.Join(labels, ",")
}
