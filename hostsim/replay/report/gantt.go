package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/go-analyze/charts/chartdraw"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// ganttRows is how many of the slowest sessions are shown of each policy.
const ganttRows = 12

// denseMoves is how many changes of the replica a row shows with a sign each; of more it shows where they are.
const denseMoves = 8

// slowest are a policy's sessions for the chart.
func (s *shown) slowest() []replay.SessionSpan {
	if s.Run == nil {
		return nil
	}
	return s.Run.Slowest[:min(ganttRows, len(s.Run.Slowest))]
}

// earliest is when the first of these sessions began, in seconds; 0 if that was soon.
func earliest(policies []shown, end float64) float64 {
	soon := end / 10
	for i := range policies {
		for _, session := range policies[i].slowest() {
			for _, t := range session.Turns {
				end = min(end, finite(t.Sent))
			}
		}
	}
	if end < soon {
		return 0
	}
	return end
}

// gantt draws the sessions that ended last: each turn's queue, prefill and decode, and where the replica changed. "" without
// sessions.
func gantt(s *shown, begin, end float64) (template.HTML, error) {
	sessions := s.slowest()
	if len(sessions) == 0 {
		return "", nil
	}
	n := float64(len(sessions))
	ch := chart{width: 580, height: 56 + 18*len(sessions), gridX: true, xName: "time, s",
		about: fmt.Sprintf("%s: the %d sessions that ended last", s.Name, len(sessions))}
	ch.x, ch.xTicks = linear(begin, end, 6, number)
	ch.y = &scale{min: 0, max: n}
	for i := range sessions {
		ch.yTicks = append(ch.yTicks, chartdraw.Tick{Value: n - float64(i) - 0.5, Label: short(printable(sessions[i].Session), 16)})
	}
	ch.draw = func(p plane) {
		for i := range sessions {
			y := p.py(n - float64(i) - 0.5)
			drawMoves(p, drawSession(p, &sessions[i], y), y)
		}
		for i := range sessions { // to point at
			p.rect(float64(p.box.Left), p.py(n-float64(i)), float64(p.box.Width()), p.py(0)-p.py(1))
			p.paintTitled("row", sessionText(&sessions[i]))
		}
	}
	return ch.svg()
}

func drawMoves(p plane, moves []float64, y float64) {
	for _, x := range moves {
		p.move(x, y-8)
		if len(moves) > denseMoves {
			p.line(x, y-4)
			continue
		}
		p.line(x, y+8)
		p.move(x-3, y-8)
		p.line(x+3, y-8)
	}
	p.paint("moved")
}

// drawSession draws one row and returns where the replica changed.
func drawSession(p plane, s *replay.SessionSpan, y float64) (moves []float64) {
	if n := len(s.Turns); n > 0 {
		from, to := p.px(finite(s.Turns[0].Sent)), p.px(finite(s.Turns[n-1].End))
		p.rect(from, y-1.5, to-from, 3)
		p.paint("pause")
	}
	phases := [3]struct {
		class string
		path  strings.Builder
		end   float64 // of the last rectangle, which the next joins where it begins less than a third of a pixel later
		from  float64
	}{{class: "wait"}, {class: "prefill"}, {class: "decode"}}
	flush := func(k int) {
		if ph := &phases[k]; ph.end > ph.from {
			p.path.Reset()
			p.rect(ph.from, y-5.5, ph.end-ph.from, 11)
			ph.path.WriteString(p.path.String())
		}
	}
	for i, t := range s.Turns {
		times := [4]float64{t.Sent, max(t.Sent, t.Admitted), max(t.Sent, t.Admitted, t.First), max(t.Sent, t.Admitted, t.First, t.End)}
		for k := range phases {
			from, to := p.px(finite(times[k])), p.px(finite(times[k+1]))
			if from > phases[k].end+0.3 || phases[k].end == 0 {
				flush(k)
				phases[k].from = from
			}
			phases[k].end = max(phases[k].end, to)
		}
		if i > 0 && t.Replica != s.Turns[i-1].Replica {
			moves = append(moves, p.px(finite(t.Sent)))
		}
	}
	for k := len(phases) - 1; k >= 0; k-- { // waiting is drawn last: it is what one looks for
		flush(k)
		p.path.Reset()
		p.path.WriteString(phases[k].path.String())
		p.paint(phases[k].class)
	}
	return moves
}

// phasesText is the time that sessions spent in each phase, by that from their first turn to their end.
func phasesText(sessions []replay.SessionSpan) string {
	var wait, prefill, decode, all float64
	for _, s := range sessions {
		for i, t := range s.Turns {
			wait, prefill, decode = wait+t.Admitted-t.Sent, prefill+t.First-t.Admitted, decode+t.End-t.First
			if i == len(s.Turns)-1 {
				all += t.End - s.Turns[0].Sent
			}
		}
	}
	if !(all > 0) || finite(wait+prefill+decode) == 0 {
		return ""
	}
	part := func(v float64) string { return number(v/all*100, 0) + "% " }
	return part(wait) + "queued, " + part(prefill) + "prefill, " + part(decode) + "decode, " + part(all-wait-prefill-decode) + "between turns"
}

func sessionText(s *replay.SessionSpan) string {
	var wait, prefill, decode float64
	moves := 0
	for i, t := range s.Turns {
		wait, prefill, decode = wait+t.Admitted-t.Sent, prefill+t.First-t.Admitted, decode+t.End-t.First
		if i > 0 && t.Replica != s.Turns[i-1].Replica {
			moves++
		}
	}
	if len(s.Turns) == 0 {
		return s.Session
	}
	return fmt.Sprintf("%s: %d turns from %s to %s s; %s s queued, %s s prefill, %s s decode; %d moves", s.Session, len(s.Turns),
		number(finite(s.Turns[0].Sent), 0), number(finite(s.Turns[len(s.Turns)-1].End), 0), number(finite(wait), 0), number(finite(prefill), 0), number(finite(decode), 0), moves)
}
