package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-analyze/charts/chartdraw"
)

// Scales go from 0 to the domain without turning back; ticks are inside, in order and few.
func TestScales(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		lo := math.Exp(20*rnd.Float64() - 10)
		hi := lo * (1 + math.Exp(12*rnd.Float64()-4))
		for name, make := range map[string]func() (*scale, []float64){
			"linear":      func() (*scale, []float64) { s, ticks := linear(lo, hi, 5, number); return s, values(ticks) },
			"logarithmic": func() (*scale, []float64) { s, ticks := logarithmic(lo, hi); return s, values(ticks) },
			"tail":        func() (*scale, []float64) { s, ticks := tail(); return s, values(ticks) },
		} {
			s, ticks := make()
			s.SetDomain(500)
			if s.at(s.min) != 0 || math.Abs(s.at(s.max)-500) > 1e-9 {
				t.Fatalf("%s %s: ends at %g and %g", name, s, s.at(s.min), s.at(s.max))
			}
			if name != "tail" && (s.min > lo*(1+1e-9) || s.max < hi*(1-1e-9)) {
				t.Fatalf("%s %s does not hold %g to %g", name, s, lo, hi)
			}
			before := -1.0
			for i := range 101 {
				at := s.at(s.min + (s.max-s.min)*float64(i)/100)
				if at < before {
					t.Fatalf("%s %s turns back", name, s)
				}
				before = at
			}
			if len(ticks) < 1 || len(ticks) > 25 {
				t.Fatalf("%s %s has %d ticks", name, s, len(ticks))
			}
			for i, v := range ticks {
				if v < s.min*(1-1e-9) || v > s.max*(1+1e-9) || i > 0 && v <= ticks[i-1] {
					t.Fatalf("%s %s has the ticks %g", name, s, ticks)
				}
			}
		}
	}
}

func TestDuration(t *testing.T) {
	for v, want := range map[float64]string{1e-6: "1 µs", 2e-5: "20 µs", 5e-4: "500 µs", 1e-3: "1 ms", 0.2: "200 ms", 1: "1 s", 50: "50 s", 10000: "10,000 s", 1e-7: "0.1 µs"} {
		if got := duration(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}

func values(ticks []chartdraw.Tick) (out []float64) {
	for _, t := range ticks {
		out = append(out, t.Value)
	}
	return out
}
