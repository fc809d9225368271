package report

import (
	"html/template"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// latencies are the charts of percentiles.
var latencies = []struct {
	name, long string
	of         func(*replay.Percentiles) []float64
}{
	{"TTFT", "time to first token", func(p *replay.Percentiles) []float64 { return p.TTFT }},
	{"TPOT", "time per output token", func(p *replay.Percentiles) []float64 { return p.TPOT }},
	{"E2E", "from sent to the last token", func(p *replay.Percentiles) []float64 { return p.E2E }},
	{"Queue", "from sent to admitted", func(p *replay.Percentiles) []float64 { return p.Queue }},
}

// latency draws a latency at each percentile; "" where nothing was measured.
func latency(policies []shown, name string, of func(*replay.Percentiles) []float64) (template.HTML, error) {
	lo, hi := 0.0, 0.0
	for _, p := range policies {
		if p.Run == nil {
			continue
		}
		for _, v := range of(&p.Run.Latency) {
			if v = finite(v); v > 0 && (lo == 0 || v < lo) {
				lo = v
			}
			hi = max(hi, finite(v))
		}
	}
	if hi == 0 {
		return "", nil
	}
	lo = max(lo, hi/1e5) // what is less is drawn at the bottom
	ch := chart{width: 580, height: 260, gridX: true, gridY: true, xName: "percentile of turns; 0, 90 and 99 are equally far apart", about: name + " by percentile, one line a policy"}
	ch.x, ch.xTicks = tail()
	ch.y, ch.yTicks = logarithmic(lo, hi)
	ch.draw = func(p plane) {
		for _, s := range policies {
			if s.Run == nil {
				continue
			}
			values := of(&s.Run.Latency)
			for i, v := range values {
				x, y := p.px(float64(i)/float64(max(1, len(values)-1))*100), p.py(max(finite(v), ch.y.min))
				if i == 0 {
					p.move(x, y)
				} else {
					p.line(x, y)
				}
			}
			p.paintTitled("line "+s.Class, s.Name)
		}
	}
	return ch.svg()
}
