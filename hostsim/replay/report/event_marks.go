package report

import (
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// eventMark is something that happens to the fleet, at seconds.
type eventMark struct {
	at   float64
	text string
}

// mostMarks of an event that repeats are drawn; more would hide what is below.
const mostMarks = 32

// eventMarks are the events that the setup names, up to end seconds. What is no event there, such as "and 3 more", is left
// out.
func eventMarks(setup []replay.Fact, end float64) (marks []eventMark) {
	for _, f := range setup {
		if f.Name != "events" {
			continue
		}
		for text := range strings.SplitSeq(f.Value, "; ") {
			e, err := replay.ParseEvent(text)
			if err != nil {
				continue
			}
			at := e.At.Seconds()
			for n := 0; at <= end && n < mostMarks; n++ {
				marks = append(marks, eventMark{at, printable(text)})
				if e.Every <= 0 {
					break
				}
				at += e.Every.Seconds()
			}
		}
	}
	return marks
}

// drawEvents draws a line at each time.
func drawEvents(p plane, marks []eventMark) {
	for _, m := range marks {
		p.move(p.px(m.at), float64(p.box.Top))
		p.line(p.px(m.at), float64(p.box.Bottom))
		p.paintTitled("event", m.text+": "+number(m.at, 0)+" s")
	}
}
