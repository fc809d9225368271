package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v        float64
		decimals int
		want     string
	}{{0, 0, "0"}, {999.4, 0, "999"}, {999.5, 0, "1,000"}, {1234567.891, 2, "1,234,567.89"}, {-1234, 0, "-1,234"}, {-0.001, 2, "0.00"}, {math.Copysign(0, -1), 1, "0.0"}, {-100, 0, "-100"}} {
		if got := number(c.v, c.decimals); got != c.want {
			t.Errorf("%g with %d decimals: %s, want %s", c.v, c.decimals, got, c.want)
		}
		if back := strings.ReplaceAll(number(c.v, c.decimals), ",", ""); back != strings.TrimPrefix(fmt.Sprintf("%.*f", c.decimals, c.v), "-") && c.v >= 0 {
			t.Errorf("%g: %s", c.v, back)
		}
	}
}

// A spread is that of the sorted numbers, without those that are none.
func TestSpread(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	wall := metricOf("wall")
	for range 500 {
		p := &replay.PolicyResult{}
		var known []float64
		for range rnd.IntN(8) {
			v := float64(rnd.IntN(20))
			switch rnd.IntN(6) {
			case 0:
				v = math.NaN()
			case 1:
				v = math.Inf(1)
			default:
				known = append(known, v)
			}
			p.Seeds = append(p.Seeds, replay.SeedResult{Wall: v})
		}
		s := wall.spread(p)
		if s.n != len(known) || len(s.all) != len(p.Seeds) {
			t.Fatalf("%d of %d numbers, want %d", s.n, len(s.all), len(known))
		}
		if s.n == 0 {
			continue
		}
		slices.Sort(known)
		below, above := 0, 0
		for _, v := range known {
			if v <= s.median {
				below++
			}
			if v >= s.median {
				above++
			}
		}
		if s.min != known[0] || s.max != known[len(known)-1] || 2*below < s.n || 2*above < s.n {
			t.Fatalf("%v: %+v", known, s)
		}
	}
}

// The best is marked where some are worse, and both of two that are best.
func TestBest(t *testing.T) {
	result := func(walls ...float64) (policies []replay.PolicyResult) {
		for _, w := range walls {
			policies = append(policies, replay.PolicyResult{Seeds: []replay.SeedResult{{Wall: w, HitRate: w, Turns: 1}}})
		}
		return policies
	}
	for _, c := range []struct {
		metric string
		values []float64
		want   string
	}{
		{"wall", []float64{1, 2, 3}, "100"}, {"wall", []float64{3, 1, 1}, "011"}, {"wall", []float64{2, 2}, "00"}, {"wall", []float64{2}, "0"},
		{"wall", []float64{math.NaN(), 2}, "00"}, {"hit rate", []float64{0.1, 0.3, 0.2}, "010"}, {"decisions/s", []float64{1, 2}, "00"},
	} {
		policies := result(c.values...)
		column := newColumn(metricOf(c.metric), policies)
		got := ""
		for i := range policies {
			got += map[bool]string{false: "0", true: "1"}[column.best(i)]
		}
		if got != c.want {
			t.Errorf("%s %v: %s, want %s", c.metric, c.values, got, c.want)
		}
	}
}

// Homes are of several gateways: without a figure there is neither column nor row nor word of them, and with one for some
// policies the others have none.
func TestHomes(t *testing.T) {
	of := func(r *replay.Result) string {
		var b strings.Builder
		if err := Table(&b, r); err != nil {
			t.Fatal(err)
		}
		return b.String() + htmlOf(t, r)
	}
	r := fake(four[:2], 2, 3)
	if text := of(r); strings.Contains(text, "homes") {
		t.Error("homes, and one gateway")
	}
	for i := range r.Policies[0].Seeds {
		r.Policies[0].Seeds[i].HomesPerSession = 2.25
	}
	text := of(r)
	for _, want := range []string{"  homes  ", "  2.25  ", "\nhomes: replicas that served", ">homes/session</th>", "<dt>homes/session</dt>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	c := newColumn(metricOf(homes), r.Policies)
	if c.cells[0].n != 2 || c.cells[1].n != 0 {
		t.Errorf("%d and %d seeds have homes", c.cells[0].n, c.cells[1].n)
	}
}
