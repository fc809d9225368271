package report

import (
	"cmp"
	"html/template"
	"slices"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// shares draws what each replica did, the busiest first, one line a policy; "" where nothing was done.
func shares(policies []shown, about string, of func(*replay.ReplicaResult) float64) (template.HTML, error) {
	byPolicy := make([][]float64, len(policies))
	most, replicas := 0.0, 0
	for i, p := range policies {
		if p.Run == nil {
			continue
		}
		for k := range p.Run.Replicas {
			byPolicy[i] = append(byPolicy[i], finite(of(&p.Run.Replicas[k])))
		}
		slices.SortFunc(byPolicy[i], func(a, b float64) int { return cmp.Compare(b, a) })
		replicas = max(replicas, len(byPolicy[i]))
		if len(byPolicy[i]) > 0 {
			most = max(most, byPolicy[i][0])
		}
	}
	if most == 0 {
		return "", nil
	}
	ch := chart{width: 580, height: 260, gridY: true, xName: "replicas, the busiest first", about: about}
	ch.x, ch.xTicks = linear(0, float64(replicas), min(6, replicas), number)
	ch.y, ch.yTicks = linear(0, most*1.04, 5, number)
	ch.draw = func(p plane) {
		for i, s := range policies {
			for k, v := range byPolicy[i] {
				if k == 0 {
					p.move(p.px(0), p.py(v))
				} else {
					p.line(p.px(float64(k)), p.py(v))
				}
				p.line(p.px(float64(k+1)), p.py(v))
			}
			p.paintTitled("line "+s.Class, s.Name)
		}
	}
	return ch.svg()
}
