// Package report shows what a replay measured: a table for terminals, and a page with charts that is one file.
package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// blocks are the columns of Table that belong together.
var blocks = [][]string{
	{"wall", "t95", "hit rate", "queries/prompt"},
	{"TTFT p50", "TTFT p99", "TPOT p50", "queue p99"},
	{"requests max/mean", "busy max/mean", "preemptions", "moves", "errors", "decisions/s"},
}

// A table shows longestName characters of a policy's name and continues below what would be wider than longestLine.
const (
	longestName = 28
	longestLine = 120
)

// Table writes one row a policy: medians over the seeds, least and greatest beside them, and the wall time by that of the
// first policy. What was not measured is "-". Errors are those of w.
func Table(w io.Writer, r *replay.Result) error {
	var b strings.Builder
	writeSetup(&b, r)
	if len(r.Policies) == 0 {
		b.WriteString("no policy was replayed\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	for _, names := range blocks {
		var g grid
		for _, name := range names {
			c := newColumn(metricOf(name), r.Policies)
			addMetric(&g, &c)
			if name == "wall" {
				g.column("x first", ratios(&c), true)
			}
		}
		g.write(&b, gridColumn{cells: append([]string{"policy"}, policyNames(r)...)})
	}
	b.WriteString("\n" + legend(r) + "\n")
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
	text := "* best of its column. x first: wall time by the first policy's."
	if _, most := seedCounts(r); most > 1 {
		text = "Median over seeds [least..greatest]. " + text
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

// addMetric adds the medians, a mark beside the best, and the spread where there is one.
func addMetric(g *grid, c *column) {
	var medians, spreads []string
	wide, star := false, false
	for i, s := range c.cells {
		median, mark, between := "-", "", ""
		if s.n > 0 {
			median = c.text(s.median)
			if c.best(i) {
				mark, star = "*", true
			}
		}
		if s.n > 1 && c.text(s.min) != c.text(s.max) {
			between, wide = "["+c.text(s.min)+".."+c.text(s.max)+"]", true
		}
		medians = append(medians, median+mark)
		spreads = append(spreads, between)
	}
	if star {
		for i, m := range medians {
			if !strings.HasSuffix(m, "*") {
				medians[i] = m + " "
			}
		}
	}
	g.column(c.head(), medians, true)
	if wide {
		g.join(spreads)
	}
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
