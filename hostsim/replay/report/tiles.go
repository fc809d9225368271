package report

import (
	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// tile is a key figure: the best of a metric, and who has it.
type tile struct {
	Name, Long, Value, Unit string
	// Policy has the value; "" where all have it. Class is its colour.
	Policy, Class string
	// Next is the second best, with a word where the seeds of both overlap.
	Next string
}

// keyFigures are the metrics on top of a page.
var keyFigures = []string{"wall", "t95", "hit rate", "TTFT p99", "busy max/mean", "errors"}

func tiles(r *replay.Result, policies []shown) (out []tile) {
	for _, name := range keyFigures {
		c := newColumn(metricOf(name), r.Policies)
		best, next := c.order()
		if best < 0 {
			continue
		}
		t := tile{Name: c.name, Long: c.long, Value: c.text(c.cells[best].median), Unit: c.unit}
		if len(policies) > 1 && c.best(best) {
			t.Policy, t.Class = policies[best].Name, policies[best].Class
			b, n := c.cells[best], c.cells[next]
			t.Next = "next: " + short(policies[next].Name, longestName) + " " + c.withUnit(n.median)
			if b.median != n.median && b.n > 1 && n.n > 1 && b.max >= n.min && n.max >= b.min {
				t.Next += ", seeds overlap"
			}
		} else if len(policies) > 1 {
			t.Next = "all policies"
		}
		out = append(out, t)
	}
	return out
}

// order is which policies have the best and the second best median; -1 where there is none.
func (c *column) order() (best, next int) {
	best, next = -1, -1
	for i, s := range c.cells {
		better := func(than int) bool { return than < 0 || (s.median-c.cells[than].median)*float64(c.want) > 0 }
		switch {
		case s.n == 0:
		case better(best):
			best, next = i, best
		case better(next):
			next = i
		}
	}
	return best, next
}
