package report

import (
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// A heat map has a row a replica, those that come later begin later, and each cell is the mean of its samples.
func TestHeat(t *testing.T) {
	s := &replay.SeedResult{}
	for i := range 256 {
		v := replay.Sample{At: float64(i), Requests: []int{i % 2 * 4, 7}}
		if i >= 128 {
			v.Requests = append(v.Requests, 1)
		}
		s.Samples = append(s.Samples, v)
	}
	h := heatOf(s)
	if len(h.rows) != 3 || len(h.rows[0]) != 128 || h.end != 255 || h.names != nil {
		t.Fatalf("%d rows", len(h.rows))
	}
	for i := range 128 {
		late := -1.0
		if i >= 64 {
			late = 1
		}
		if h.rows[0][i] != 2 || h.rows[1][i] != 7 || h.rows[2][i] != late {
			t.Fatalf("column %d: %g %g %g", i, h.rows[0][i], h.rows[1][i], h.rows[2][i])
		}
	}
}

// Of many replicas it shows the most loaded on top, deciles, and the least loaded.
func TestHeatOfMany(t *testing.T) {
	s := &replay.SeedResult{Samples: []replay.Sample{{}, {At: 1}}}
	for i := range 101 {
		s.Samples[0].Requests = append(s.Samples[0].Requests, 100-i)
		s.Samples[1].Requests = append(s.Samples[1].Requests, i)
	}
	h := heatOf(s)
	if len(h.rows) != 11 || len(h.names) != 11 {
		t.Fatalf("%d rows, %d names", len(h.rows), len(h.names))
	}
	for i, row := range h.rows {
		if want := float64(100 - 10*i); !slices.Equal(row, []float64{want, want}) {
			t.Errorf("%s: %g, want %g", h.names[i], row, want)
		}
	}
}

// One replica that stands far out does not turn all the others pale.
func TestDarkest(t *testing.T) {
	even := heat{rows: [][]float64{slices.Repeat([]float64{4}, 1000), slices.Repeat([]float64{-1}, 1000)}}
	if most, more := darkest([]heat{even, {}}); most != 4 || more {
		t.Errorf("%g %v", most, more)
	}
	even.rows[0][7] = 400
	if most, more := darkest([]heat{even}); most != 4 || !more {
		t.Errorf("%g %v", most, more)
	}
	if most, more := darkest(nil); most != 0 || more {
		t.Errorf("%g %v", most, more)
	}
	for v, want := range map[float64]int{-1: -1, 0: 0, 0.01: 1, 1: 3, 3.99: 8, 4: 8, 400: 8} {
		if got := shadeOf(v, 4); got != want {
			t.Errorf("%g of 4 has the shade %d, want %d", v, got, want)
		}
	}
}
