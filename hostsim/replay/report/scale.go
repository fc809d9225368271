package report

import (
	"fmt"
	"math"

	"github.com/go-analyze/charts/chartdraw"
)

// scale maps values to positions: 0 at min, domain at max. It is a chartdraw.Range that keeps fractions. bend is nil for a
// linear scale.
type scale struct {
	min, max float64
	bend     func(float64) float64
	domain   int
}

var _ chartdraw.Range = (*scale)(nil)

func (s *scale) at(v float64) float64 {
	lo, hi := s.min, s.max
	v = min(max(v, lo), hi)
	if s.bend != nil {
		lo, hi, v = s.bend(lo), s.bend(hi), s.bend(v)
	}
	if hi == lo {
		return 0
	}
	return (v - lo) / (hi - lo) * float64(s.domain)
}

func (s *scale) Translate(v float64) int { return int(math.Round(s.at(v))) }
func (s *scale) GetMin() float64         { return s.min }
func (s *scale) GetMax() float64         { return s.max }
func (s *scale) GetDelta() float64       { return s.max - s.min }
func (s *scale) GetDomain() int          { return s.domain }
func (s *scale) SetDomain(d int)         { s.domain = d }
func (s *scale) IsDescending() bool      { return false }
func (s *scale) IsZero() bool            { return false }
func (s *scale) String() string          { return fmt.Sprintf("%g..%g", s.min, s.max) }

// SetMin and SetMax do nothing: chartdraw would set them to the outermost ticks.
func (s *scale) SetMin(float64) {}
func (s *scale) SetMax(float64) {}

// linear is a scale over lo to hi with about n round ticks inside.
func linear(lo, hi float64, n int, text func(v float64, decimals int) string) (*scale, []chartdraw.Tick) {
	if !(hi > lo) {
		hi = lo + 1
	}
	step := niceStep((hi - lo) / float64(n))
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	var ticks []chartdraw.Tick
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+step*1e-9; k++ {
		ticks = append(ticks, chartdraw.Tick{Value: k * step, Label: text(k*step, decimals)})
	}
	return &scale{min: lo, max: hi}, ticks
}

// niceStep is the least of 1, 2, 5, 10, .. that is not less than v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logarithmic is a scale of seconds around lo to hi, both above 0, with ticks at the decades, and at 2 and 5 in between where
// there are few.
func logarithmic(lo, hi float64) (*scale, []chartdraw.Tick) {
	steps := []float64{1, 2, 5}
	if hi > 200*lo {
		steps = steps[:1]
	}
	var all []float64
	for e := math.Floor(math.Log10(lo)) - 1; e <= math.Log10(hi)+1; e++ {
		for _, m := range steps {
			all = append(all, m*math.Pow(10, e))
		}
	}
	from, to := 0, len(all)-1
	for from+1 < to && all[from+1] <= lo*(1+1e-9) {
		from++
	}
	for to-1 > from && all[to-1] >= hi*(1-1e-9) {
		to--
	}
	var ticks []chartdraw.Tick
	for _, v := range all[from : to+1] {
		ticks = append(ticks, chartdraw.Tick{Value: v, Label: duration(v)})
	}
	return &scale{min: all[from], max: all[to], bend: math.Log10}, ticks
}

// duration is a round number of seconds in words.
func duration(v float64) string {
	unit := " s"
	switch {
	case v < 0.999e-3:
		v, unit = v*1e6, " µs"
	case v < 0.999:
		v, unit = v*1e3, " ms"
	}
	decimals := 0
	if v < 0.999 {
		decimals = -int(math.Floor(math.Log10(v) + 1e-9))
	}
	return number(v, decimals) + unit
}

// tail is a scale of percentiles that gives each further nine the same room; 100 stands where 99.6 would.
func tail() (*scale, []chartdraw.Tick) {
	var ticks []chartdraw.Tick
	for _, p := range []struct {
		v    float64
		text string
	}{{0, "0"}, {50, "50"}, {75, "75"}, {90, "90"}, {95, "95"}, {99, "99"}, {100, "100"}} {
		ticks = append(ticks, chartdraw.Tick{Value: p.v, Label: p.text})
	}
	return &scale{min: 0, max: 100, bend: func(p float64) float64 { return -math.Log10(1 - min(p, 99.6)/100) }}, ticks
}
