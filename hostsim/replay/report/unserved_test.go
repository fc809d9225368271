package report

import (
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// Latencies that nobody had are none, and the table says how many turns nobody served, and why where the head knows.
func TestTableOfUnserved(t *testing.T) {
	none := replay.SeedResult{Wall: 1798, Turns: 736, Errors: 736, DecisionsPerSecond: 5}
	some := replay.SeedResult{Wall: 1798, Turns: 736, Errors: 3, TTFTP50: 1, TTFTP99: 2, TPOTP99: 0}
	r := &replay.Result{Setup: []replay.Fact{{Name: "too long", Value: "736 of 736 turns"}}, Policies: []replay.PolicyResult{
		{Policy: "nobody", Seeds: []replay.SeedResult{none, none}},
		{Policy: "few", Seeds: []replay.SeedResult{some, {Turns: 736, Errors: 12}}},
	}}
	text := func() string {
		var b strings.Builder
		if err := Table(&b, r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := text()
	for _, want := range []string{"\nnobody: 736 of 736 turns were served by nobody.\nfew: 3 to 12 of 736 turns were served by nobody.\nToo long: 736 of 736 turns.\n"} {
		if !strings.HasSuffix(got, want) {
			t.Errorf("no %q at the end of\n%s", want, got)
		}
	}
	for name, want := range map[string]int{"TTFT p50": 0, "hit rate": 0, "E2E p99": 0, "TPOT p50": 0, "queue p99": 0, "wall": 2, "errors": 2, "decisions/s": 2} {
		if n := metricOf(name).spread(&r.Policies[0]).n; n != want {
			t.Errorf("%s: %d of 2 seeds have it, want %d", name, n, want)
		}
	}
	for name, want := range map[string]int{"TTFT p50": 2, "TPOT p50": 0} {
		if n := metricOf(name).spread(&r.Policies[1]).n; n != want {
			t.Errorf("%s: %d of 2 seeds that served have it, want %d", name, n, want)
		}
	}
	if r.Policies = []replay.PolicyResult{{Policy: "all", Seeds: []replay.SeedResult{{Turns: 4}}}}; strings.Contains(text(), "served by nobody") || strings.Contains(text(), "Too long:") {
		t.Errorf("all were served:\n%s", text())
	}
}

// Values that are written alike are all the best, or none is where all are.
func TestBestIsOfWhatIsWritten(t *testing.T) {
	for _, c := range []struct {
		walls []float64
		want  string
	}{
		{[]float64{1000.1, 1000.3, 1200}, "**-"}, {[]float64{1200, 1000.4, 1000.1}, "-**"}, {[]float64{1000.1, 1000.3}, "--"}, {[]float64{1001, 1000}, "-*"},
	} {
		var policies []replay.PolicyResult
		for _, w := range c.walls {
			policies = append(policies, replay.PolicyResult{Seeds: []replay.SeedResult{{Wall: w, Turns: 1}}})
		}
		column, got := newColumn(metricOf("wall"), policies), ""
		for i := range policies {
			got += map[bool]string{true: "*", false: "-"}[column.best(i)]
		}
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.walls, got, c.want)
		}
	}
}
