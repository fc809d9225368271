package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/go-analyze/charts/chartdraw"
)

// compared are the metrics that have a chart of their own.
var compared = []string{"wall", "t95", "hit rate", "TTFT p50", "TTFT p99", "queue p99", "TPOT p50", "requests max/mean", "busy max/mean"}

// compare draws a metric: a row a policy, a dot a seed, a line at the median.
func compare(c *column, policies []shown) (template.HTML, error) {
	lo, hi, any := 0.0, 0.0, false
	for _, s := range c.cells {
		if s.n > 0 {
			if !any {
				lo, hi, any = s.min, s.max, true
			}
			lo, hi = min(lo, s.min), max(hi, s.max)
		}
	}
	if !any {
		return "", nil
	}
	// Scales begin at 0, or where all replicas are equal, if that leaves the dots apart.
	lo, hi = lo*c.factor, hi*c.factor
	zero := 0.0
	if strings.HasSuffix(c.name, "max/mean") {
		zero = 1
	}
	if lo-zero < 0.6*(hi-zero) {
		lo = zero
	}
	room := max((hi-lo)*0.06, hi*0.01)
	switch {
	case hi == 0:
		room = 1
	case lo == hi:
		room = hi * 0.05
	}
	low := lo - room
	if lo >= zero {
		low = max(zero, low)
	}
	ch := chart{width: 380, height: 46 + 22*len(policies), gridX: true, about: c.head() + ": " + mediansText(c, policies)}
	ch.x, ch.xTicks = linear(low, hi+room, 5, number)
	n := float64(len(policies))
	ch.y = &scale{min: 0, max: n}
	for i, p := range policies {
		ch.yTicks = append(ch.yTicks, chartdraw.Tick{Value: n - float64(i) - 0.5, Label: short(p.Name, 26)})
	}
	ch.draw = func(p plane) {
		for i, s := range c.cells {
			if s.n == 0 {
				continue
			}
			y := p.py(n - float64(i) - 0.5)
			p.move(p.px(s.min*c.factor), y)
			p.line(p.px(s.max*c.factor), y)
			p.paint("span " + policies[i].Class)
			for k, v := range s.all {
				if v == v {
					p.dot(p.px(v*c.factor), y, 3.2)
					p.paintTitled("seed "+policies[i].Class, fmt.Sprintf("%s, seed %d: %s", policies[i].Name, policies[i].policy.Seeds[k].Seed, c.withUnit(v)))
				}
			}
			p.rect(p.px(s.median*c.factor)-1.25, y-8, 2.5, 16)
			p.paintTitled("median "+policies[i].Class, fmt.Sprintf("%s, median: %s", policies[i].Name, c.withUnit(s.median)))
		}
	}
	return ch.svg()
}

func mediansText(c *column, policies []shown) (text string) {
	for i, s := range c.cells {
		if s.n == 0 {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += policies[i].Name + " " + c.withUnit(s.median)
		if s.n > 1 {
			text += " (" + c.text(s.min) + " to " + c.text(s.max) + ")"
		}
	}
	return text
}

// withUnit is v and its unit.
func (c *column) withUnit(v float64) string {
	switch c.unit {
	case "":
		return c.text(v)
	case "%":
		return c.text(v) + "%"
	}
	return c.text(v) + " " + c.unit
}
