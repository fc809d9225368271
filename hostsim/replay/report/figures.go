package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// figure is a chart with its heading.
type figure struct {
	Title string
	// Class is the colour of the policy that the figure is about, if it is about one.
	Class string
	// Note says what it is and which way is better, or the figures of the run that is drawn.
	Note string
	SVG  template.HTML
}

// figures are the charts of a page.
type figures struct {
	Compare, OverTime, Load, Latency, Shares, Gantt []figure
	// HeatMost is what the darkest shade of Load stands for, Deciles that its rows are no replicas.
	HeatMost string
	Deciles  bool
	Events   bool // Load has lines at events
	Shades   []int
}

// add keeps a chart that has something to show.
func add(to *[]figure, title, class string, svg template.HTML, err error) error {
	if err == nil && svg != "" {
		*to = append(*to, figure{Title: title, Class: class, SVG: svg})
	}
	return err
}

func drawFigures(r *replay.Result, policies []shown) (*figures, error) {
	f := &figures{}
	for i := range shades {
		f.Shades = append(f.Shades, i)
	}
	for _, name := range compared {
		c := newColumn(metricOf(name), r.Policies)
		svg, err := compare(&c, policies)
		if err := add(&f.Compare, c.head(), "", svg, err); err != nil {
			return nil, err
		}
		if n := len(f.Compare); svg != "" {
			f.Compare[n-1].Note = c.long + map[int]string{-1: "; less is better", 1: "; more is better"}[c.want]
		}
	}
	for _, l := range latencies {
		svg, err := latency(policies, l.name, l.of)
		if err := add(&f.Latency, l.name+": "+l.long, "", svg, err); err != nil {
			return nil, err
		}
	}
	svg, err := shares(policies, "Requests by replica", func(r *replay.ReplicaResult) float64 { return float64(r.Requests) })
	if err := add(&f.Shares, "Requests", "", svg, err); err != nil {
		return nil, err
	}
	svg, err = shares(policies, "Busy time by replica", func(r *replay.ReplicaResult) float64 { return r.Busy })
	if err := add(&f.Shares, "Busy time, s", "", svg, err); err != nil {
		return nil, err
	}
	end := longest(policies)
	if end == 0 {
		return f, nil
	}
	svg, err = hitRates(policies, finite(r.Ideal))
	if err := add(&f.OverTime, "Hit rate", "", svg, err); err != nil {
		return nil, err
	}
	svg, err = openSessions(policies)
	if err := add(&f.OverTime, "Open sessions", "", svg, err); err != nil {
		return nil, err
	}
	if err := f.drawLoads(policies, end, eventMarks(r.Setup, end)); err != nil {
		return nil, err
	}
	begin := earliest(policies, end)
	for i := range policies {
		svg, err := gantt(&policies[i], begin, end)
		if err := add(&f.Gantt, policies[i].Name, policies[i].Class, svg, err); err != nil {
			return nil, err
		}
		if n := len(f.Gantt); n > 0 && svg != "" {
			f.Gantt[n-1].Note = phasesText(policies[i].slowest())
		}
	}
	return f, nil
}

// runText is some figures of a run.
func runText(s *replay.SeedResult, names ...string) (text string) {
	one := []replay.PolicyResult{{Seeds: []replay.SeedResult{*s}}}
	for _, name := range names {
		if c := newColumn(metricOf(name), one); c.cells[0].n > 0 {
			text += ", " + c.name + " " + c.withUnit(c.cells[0].median)
		}
	}
	return strings.TrimPrefix(text, ", ")
}

// drawLoads draws a heat map a policy, all with the same shades and the same time.
func (f *figures) drawLoads(policies []shown, end float64, events []eventMark) error {
	f.Events = len(events) > 0
	heats := make([]heat, len(policies))
	for i, p := range policies {
		if p.Run != nil {
			heats[i] = heatOf(p.Run)
			f.Deciles = f.Deciles || heats[i].names != nil
		}
	}
	most, more := darkest(heats)
	decimals := 0
	if most < 10 {
		decimals = 1
	}
	f.HeatMost = number(most, decimals) + " requests"
	if more {
		f.HeatMost += " or more"
	}
	for i, p := range policies {
		if !slices.ContainsFunc(heats[i].rows, func(row []float64) bool { return len(row) > 0 }) {
			continue
		}
		svg, err := heats[i].draw(p.Name, most, end, events)
		if err := add(&f.Load, p.Name, p.Class, svg, err); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		f.Load[len(f.Load)-1].Note = runText(p.Run, "wall", "hit rate", "busy max/mean")
	}
	return nil
}
