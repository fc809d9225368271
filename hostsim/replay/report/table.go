// Package report shows what a replay measured: a table for terminals, and a page with charts that is one file.
package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// heading is a metric's column of a table: its name on two lines, to the second of which the unit is added.
type heading struct{ metric, top, bottom string }

// decisive are the columns that tell which policy to take; ranged those of them whose seeds are shown, and secondary what
// explains them.
var (
	decisive = []heading{{"wall", "wall", ""}, {"t95", "t95", ""}, {"hit rate", "hit", ""}, {"TTFT p50", "TTFT", "p50"},
		{"TTFT p99", "TTFT", "p99"}, {"queue p99", "queue", "p99"}, {"requests max/mean", "requests", "max/mean"},
		{"busy max/mean", "busy", "max/mean"}, {"moves", "moves", ""}, {homes, "homes", ""}, {"errors", "errors", ""}}
	ranged    = decisive[:3]
	secondary = []heading{{"queries/prompt", "queries", "/prompt"}, {"reported hit rate", "reported", "hit"}, {"TPOT p50", "TPOT", "p50"},
		{"TPOT p99", "TPOT", "p99"}, {"preemptions", "preemptions", ""}, {"retries", "retries", ""}, {"KV use, mean", "KV use", "mean"},
		{"KV use, max", "KV use", "max"}, {"decisions/s", "decisions", "/s"}}
)

// A table shows longestName characters of a policy's name and continues below what would be wider than longestLine.
const (
	longestName = 28
	longestLine = 120
)

// Table writes one row a policy: medians over the seeds of what decides and the wall time by that of the first policy; below,
// between what the seeds lie, and what explains the figures. What was not measured is "-". Errors are those of w.
func Table(w io.Writer, r *replay.Result) error {
	var b strings.Builder
	writeSetup(&b, r)
	if len(r.Policies) == 0 {
		b.WriteString("no policy was replayed\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	names := policyNames(r)
	first := func(head string) gridColumn {
		return gridColumn{cells: slices.Insert(slices.Clone(names), 0, "", head)}
	}
	medians(decisive, r).write(&b, first("policy"))
	if _, most := seedCounts(r); most > 1 {
		ranges(r).write(&b, first("least..most of "+seedText(r)+" seeds"))
	}
	medians(secondary, r).write(&b, first("policy"))
	b.WriteString("\n" + legend(r) + unserved(r))
	_, err := io.WriteString(w, b.String())
	return err
}

func writeSetup(b *strings.Builder, r *replay.Result) {
	width := len("ideal hit rate")
	for _, f := range r.Setup {
		width = max(width, utf8.RuneCountInString(printable(f.Name)))
	}
	for _, f := range r.Setup {
		fmt.Fprintf(b, "%s  %s\n", pad(printable(f.Name), width), printable(f.Value))
	}
	fmt.Fprintf(b, "%s  %s%% (one cache without bound for all)\n", pad("ideal hit rate", width), number(finite(r.Ideal)*100, 1))
	fmt.Fprintf(b, "%s  %s\n", pad("seeds", width), seedText(r))
}

// seedText says how many runs stand behind each figure.
func seedText(r *replay.Result) string {
	least, most := seedCounts(r)
	if least != most {
		return fmt.Sprintf("%d to %d", least, most)
	}
	return fmt.Sprint(most)
}

func seedCounts(r *replay.Result) (least, most int) {
	for i := range r.Policies {
		n := len(r.Policies[i].Seeds)
		if i == 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	return least, most
}

func legend(r *replay.Result) string {
	text := "* best of its column. x first: wall by the first policy's. hit: prompt tokens found in a replica's cache.\n" +
		"max/mean: the busiest replica by the mean of all. moves: turns served by another replica than the turn before.\n"
	if anyHomes(r.Policies) {
		text += "homes: replicas that served a session's turns, in the mean; one in the place of a lost one does not count.\n"
	}
	if _, most := seedCounts(r); most > 1 {
		text = "Medians. " + text
	}
	return text
}

// unserved says which policies left turns without an answer, and why where the setup knows.
func unserved(r *replay.Result) (text string) {
	for i := range r.Policies {
		least, most, turns := 0, 0, 0
		for k, s := range r.Policies[i].Seeds {
			if k == 0 || s.Errors < least {
				least = s.Errors
			}
			most, turns = max(most, s.Errors), max(turns, s.Turns)
		}
		if most == 0 {
			continue
		}
		count := number(float64(most), 0)
		if least != most {
			count = number(float64(least), 0) + " to " + count
		}
		text += fmt.Sprintf("%s: %s of %s turns were served by nobody.\n", printable(r.Policies[i].Policy), count, number(float64(turns), 0))
	}
	for _, f := range r.Setup {
		if text != "" && f.Name == "too long" {
			text += "Too long: " + printable(f.Value) + ".\n"
		}
	}
	return text
}

func policyNames(r *replay.Result) []string {
	var names []string
	for i := range r.Policies {
		name := printable(r.Policies[i].Policy)
		if utf8.RuneCountInString(name) > longestName {
			name = string([]rune(name)[:longestName-3]) + "..."
		}
		names = append(names, name)
	}
	return names
}

// medians are columns of medians, with a mark beside the best.
func medians(headings []heading, r *replay.Result) (g grid) {
	for _, h := range headings {
		if h.metric == homes && !anyHomes(r.Policies) {
			continue
		}
		c := newColumn(metricOf(h.metric), r.Policies)
		var cells []string
		star := false
		for i, s := range c.cells {
			cell := "-"
			if s.n > 0 {
				cell = c.text(s.median)
			}
			if c.best(i) {
				cell, star = cell+"*", true
			}
			cells = append(cells, cell)
		}
		g.column(h.top, h.under(&c), align(cells, star))
		if h.metric == "wall" {
			g.column("x", "first", ratios(&c))
		}
	}
	return g
}

// align keeps the digits of a column under each other where some have a mark behind them.
func align(cells []string, star bool) []string {
	for i, cell := range cells {
		if star && !strings.HasSuffix(cell, "*") {
			cells[i] += " "
		}
	}
	return cells
}

// ranges are columns of the least and the most of the seeds.
func ranges(r *replay.Result) (g grid) {
	for _, h := range ranged {
		c := newColumn(metricOf(h.metric), r.Policies)
		var cells []string
		for _, s := range c.cells {
			cell := "-"
			if s.n > 0 {
				cell = c.text(s.min) + ".." + c.text(s.max)
			}
			cells = append(cells, cell)
		}
		g.column(h.top, h.under(&c), cells)
	}
	return g
}

// under is the second line of a head.
func (h heading) under(c *column) string {
	if h.bottom == "" || c.unit == "" {
		return h.bottom + c.unit
	}
	return h.bottom + ", " + c.unit
}

func ratios(c *column) []string {
	var out []string
	first := c.cells[0]
	for _, s := range c.cells {
		if s.n == 0 || first.n == 0 || first.median == 0 {
			out = append(out, "-")
			continue
		}
		out = append(out, number(s.median/first.median, 2))
	}
	return out
}

// printable is text without what would move a terminal's cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
