package report

import (
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

var tickX = regexp.MustCompile(`class="tick-x">([^<]*)<`)

// A scale begins at 0, that of max/mean at 1, where all are equal; neither where the dots would lie on each other. Each has
// at least three ticks.
func TestCompareScale(t *testing.T) {
	for _, c := range []struct {
		metric string
		values []float64
		first  string
	}{
		{"wall", []float64{10, 30}, "0"}, {"hit rate", []float64{0.33, 0.89}, "0"}, {"wall", []float64{100, 101}, "99"}, {"hit rate", []float64{0.91, 0.93}, "91"},
		{"busy max/mean", []float64{1.04, 1.65}, "1.0"}, {"requests max/mean", []float64{1.6, 1.61}, "1.59"}, {"busy max/mean", []float64{1, 1}, "1.00"}, {"wall", []float64{0, 0}, "0.0"},
	} {
		var policies []replay.PolicyResult
		for _, v := range c.values {
			policies = append(policies, replay.PolicyResult{Seeds: []replay.SeedResult{{Turns: 1, Wall: v, HitRate: v, BusyMaxMean: v, RequestsMaxMean: v}}})
		}
		column := newColumn(metricOf(c.metric), policies)
		svg, err := compare(&column, shownPolicies(&replay.Result{Policies: policies}))
		if err != nil {
			t.Fatal(err)
		}
		var ticks []string
		for _, m := range tickX.FindAllStringSubmatch(string(svg), -1) {
			ticks = append(ticks, m[1])
		}
		if len(ticks) < 3 || ticks[0] != c.first {
			t.Errorf("%s of %g: ticks %s, want the first %s", c.metric, c.values, strings.Join(ticks, " "), c.first)
		}
	}
}
