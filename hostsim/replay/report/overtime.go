package report

import (
	"fmt"
	"html/template"
	"math"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// longest is the time of the last sample of all, in seconds.
func longest(policies []shown) (end float64) {
	for _, p := range policies {
		if p.Run != nil && len(p.Run.Samples) > 0 {
			end = max(end, finite(p.Run.Samples[len(p.Run.Samples)-1].At))
		}
	}
	return end
}

// point is a value at a time; none where nothing was measured.
type point struct {
	at, v float64
	none  bool
}

// lines draws one line a policy over time. The x axis is seconds.
func lines(policies []shown, about string, lo, hi float64, ticks int, text func(float64, int) string, ideal float64, of func(*replay.SeedResult) []point) (template.HTML, error) {
	ch := chart{width: 580, height: 260, gridY: true, xName: "time, s", about: about}
	ch.x, ch.xTicks = linear(0, longest(policies), 6, number)
	ch.y, ch.yTicks = linear(lo, hi, ticks, text)
	ch.draw = func(p plane) {
		if ideal > 0 {
			p.move(float64(p.box.Left), p.py(ideal))
			p.line(float64(p.box.Right), p.py(ideal))
			p.paint("ideal")
		}
		for _, s := range policies {
			if s.Run == nil {
				continue
			}
			broken := true
			for _, v := range of(s.Run) {
				switch {
				case v.none:
					broken = true
				case broken:
					p.move(p.px(v.at), p.py(v.v))
					broken = false
				default:
					p.line(p.px(v.at), p.py(v.v))
				}
			}
			p.paintTitled("line "+s.Class, s.Name)
		}
		if ideal > 0 {
			p.label("ideal "+number(ideal, 1)+"%, whole run", float64(p.box.Right), p.py(ideal)+14, "end", "note")
		}
	}
	return ch.svg()
}

func openSessions(policies []shown) (template.HTML, error) {
	most := 0
	for _, p := range policies {
		if p.Run != nil {
			for _, s := range p.Run.Samples {
				most = max(most, s.Open)
			}
		}
	}
	about := fmt.Sprintf("Open sessions over time, one line a policy; the most at once are %d", most)
	return lines(policies, about, 0, float64(most)*1.04, max(1, min(5, most)), number, 0, func(s *replay.SeedResult) (out []point) {
		for _, v := range s.Samples {
			out = append(out, point{at: finite(v.At), v: float64(v.Open)})
		}
		return out
	})
}

// hitOverTime is the hit rate of at most 32 stretches of time, in percent: a sample alone may be that of a single turn.
func hitOverTime(s *replay.SeedResult) (out []point) {
	step := (len(s.Samples) + 31) / 32
	for i := 0; i < len(s.Samples); i += step {
		var prompt, cached int64
		for _, v := range s.Samples[i:min(i+step, len(s.Samples))] {
			prompt, cached = prompt+v.PromptTokens, cached+v.CachedTokens
		}
		out = append(out, point{finite(s.Samples[min(i+step, len(s.Samples))-1].At), float64(cached) / float64(max(prompt, 1)) * 100, prompt <= 0})
	}
	return out
}

func hitRates(policies []shown, ideal float64) (template.HTML, error) {
	least := 100.0
	for _, p := range policies {
		if p.Run != nil {
			for _, v := range hitOverTime(p.Run) {
				if !v.none {
					least = min(least, v.v)
				}
			}
		}
	}
	lo := 0.0
	if least > 50 {
		lo = math.Floor(least/10) * 10
	}
	return lines(policies, "Hit rate over time, one line a policy, and the ideal "+number(ideal*100, 1)+"%", lo, 100, 5,
		func(v float64, d int) string { return number(v, d) + "%" }, ideal*100, hitOverTime)
}
