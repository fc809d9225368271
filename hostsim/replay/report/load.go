package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/go-analyze/charts/chartdraw"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

const (
	shades      = 9   // of a heat map, in the style sheet
	heatColumns = 128 // at most
	heatRows    = 64  // above that a heat map shows deciles of replicas
)

// heat is requests by row and stretch of time, -1 where a replica was not there yet.
type heat struct {
	rows  [][]float64
	names []string // of rows, where they have any
	end   float64  // seconds
}

// heatOf averages the samples of each stretch of time. Of more than heatRows replicas it keeps, at each time, the least
// loaded, the deciles and the most loaded.
func heatOf(s *replay.SeedResult) heat {
	var h heat
	if len(s.Samples) == 0 {
		return h
	}
	h.end = finite(s.Samples[len(s.Samples)-1].At)
	replicas := 0
	for _, v := range s.Samples {
		replicas = max(replicas, len(v.Requests))
	}
	h.rows = make([][]float64, replicas)
	step := (len(s.Samples) + heatColumns - 1) / heatColumns
	for i := 0; i < len(s.Samples); i += step {
		stretch := s.Samples[i:min(i+step, len(s.Samples))]
		for k := range h.rows {
			sum, n := 0, 0
			for _, v := range stretch {
				if k < len(v.Requests) {
					sum, n = sum+v.Requests[k], n+1
				}
			}
			if n == 0 {
				h.rows[k] = append(h.rows[k], -1)
			} else {
				h.rows[k] = append(h.rows[k], float64(sum)/float64(n))
			}
		}
	}
	if replicas > heatRows {
		h.deciles()
	}
	return h
}

func (h *heat) deciles() {
	out := make([][]float64, 11)
	for column := range h.rows[0] {
		var all []float64
		for _, row := range h.rows {
			if row[column] >= 0 {
				all = append(all, row[column])
			}
		}
		slices.Sort(all)
		for d := range out {
			v := -1.0
			if len(all) > 0 {
				v = all[d*(len(all)-1)/10]
			}
			out[d] = append(out[d], v)
		}
	}
	slices.Reverse(out) // the most loaded on top
	h.rows = out
	h.names = []string{"most", "90%", "80%", "70%", "60%", "median", "40%", "30%", "20%", "10%", "least"}
}

func (h *heat) most() (most float64) {
	for _, row := range h.rows {
		most = max(most, slices.Max(row))
	}
	return most
}

// darkest is what the darkest shade stands for: the most of all, or, where some stand far out, what 1 in 200 is above.
func darkest(heats []heat) (most float64, more bool) {
	var all []float64
	for i := range heats {
		for _, row := range heats[i].rows {
			for _, v := range row {
				if v > 0 {
					all = append(all, v)
				}
			}
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	most, usual := all[len(all)-1], all[(len(all)-1)*199/200]
	if most > 2*usual {
		return usual, true
	}
	return most, false
}

// draw is the heat map with the darkest shade at most requests, over end seconds, with a line at each event.
func (h *heat) draw(name string, most, end float64, events []eventMark) (template.HTML, error) {
	n := float64(len(h.rows))
	height := max(90, min(280, 9*len(h.rows)))
	if h.names != nil {
		height = 15 * len(h.rows)
	}
	ch := chart{width: 580, height: 60 + height, xName: "time, s",
		about: fmt.Sprintf("%s: requests running and waiting by replica over time, at most %s at one replica", name, number(h.most(), 1))}
	ch.x, ch.xTicks = linear(0, end, 6, number)
	ch.y = &scale{min: 0, max: n}
	if h.names != nil {
		for i, name := range h.names {
			ch.yTicks = append(ch.yTicks, chartdraw.Tick{Value: n - float64(i) - 0.5, Label: name})
		}
	} else {
		step := max(1, int(niceStep(n/6)))
		for i := 0; i < len(h.rows); i += step {
			ch.yTicks = append(ch.yTicks, chartdraw.Tick{Value: n - float64(i) - 0.5, Label: fmt.Sprint("replica ", i)})
		}
	}
	ch.draw = func(p plane) {
		paths := make([]strings.Builder, shades)
		for i, row := range h.rows {
			top, height := p.py(n-float64(i)), p.py(n-float64(i)-1)-p.py(n-float64(i))
			for from := 0; from < len(row); {
				shade, to := shadeOf(row[from], most), from+1
				for to < len(row) && shadeOf(row[to], most) == shade {
					to++
				}
				if shade >= 0 {
					left, right := p.px(h.end*float64(from)/float64(len(row))), p.px(h.end*float64(to)/float64(len(row)))
					p.path.Reset()
					p.rect(left, top, right-left+0.2, height-0.4)
					paths[shade].WriteString(p.path.String())
				}
				from = to
			}
		}
		for shade := range paths {
			p.path.Reset()
			p.path.WriteString(paths[shade].String())
			p.paint(fmt.Sprintf("h%d", shade))
		}
		drawEvents(p, events)
	}
	return ch.svg()
}

// shadeOf is 0 for nothing and shades-1 for most; -1 for a replica that is not there.
func shadeOf(v, most float64) int {
	switch {
	case v < 0:
		return -1
	case v == 0 || most <= 0:
		return 0
	}
	return min(shades-1, 1+int(math.Floor(v/most*(shades-1))))
}
