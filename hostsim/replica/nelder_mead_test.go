package replica

import (
	"math"
	"testing"
)

func TestNelderMead(t *testing.T) {
	for name, c := range map[string]struct {
		f        func(x []float64) float64
		start, x []float64
		within   float64
	}{
		"one":     {func(x []float64) float64 { return square(x[0] - 0.3) }, []float64{0.9}, []float64{0.3}, 1e-4},
		"bowl":    {func(x []float64) float64 { return square(x[0]-0.2) + 9*square(x[1]-0.7) + 4*square(x[2]-0.5) }, []float64{1, 0, 0.1}, []float64{0.2, 0.7, 0.5}, 1e-3},
		"valley":  {func(x []float64) float64 { return 100*square(x[1]-x[0]*x[0]) + square(0.8-x[0]) }, []float64{0.1, 0.9}, []float64{0.8, 0.64}, 1e-3},
		"at edge": {func(x []float64) float64 { return x[0] - x[1] + square(x[2]-0.4) }, []float64{0.5, 0.5, 0.5}, []float64{0, 1, 0.4}, 1e-2},
		"with gap": {func(x []float64) float64 {
			if x[0] < 0.25 {
				return math.Inf(1)
			}
			return x[0] + square(x[1]-0.5)
		}, []float64{0.9, 0.9}, []float64{0.25, 0.5}, 1e-2},
	} {
		calls := 0
		x, y := nelderMead(func(x []float64) float64 {
			calls++
			for _, v := range x {
				if v < 0 || v > 1 {
					t.Fatalf("%s: asked for %v", name, x)
				}
			}
			return c.f(x)
		}, c.start, 400, 1e-12)
		for i := range x {
			if math.Abs(x[i]-c.x[i]) > c.within {
				t.Errorf("%s: least at %v, want %v", name, x, c.x)
				break
			}
		}
		if y != c.f(x) {
			t.Errorf("%s: %v at %v, which is %v", name, y, x, c.f(x))
		}
		if calls > 405 {
			t.Errorf("%s: %d calls, want about 400", name, calls)
		}
	}
}

// The start is not written to: it belongs to the caller.
func TestNelderMeadKeepsStart(t *testing.T) {
	start := []float64{0.5, 0.95}
	nelderMead(func(x []float64) float64 { return x[0] + x[1] }, start, 50, 0)
	if start[0] != 0.5 || start[1] != 0.95 {
		t.Error(start)
	}
}

func TestNelderMeadStops(t *testing.T) {
	calls := 0
	nelderMead(func(x []float64) float64 { calls++; return square(x[0] - 0.3) }, []float64{0.9}, 400, 1e-6)
	if calls > 60 {
		t.Errorf("%d calls for a parabola to 1e-6", calls)
	}
}
