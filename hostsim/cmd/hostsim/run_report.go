package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/suite"
)

// Of a case that failed, the log is shown where it is not longer than shownLog lines. Else it is cut to the first of the step
// that failed, where a crash begins, and the last.
const (
	shownLog   = 12
	shownFirst = 8
	shownLast  = 4
)

// runReport prints results as they come, or gathers them for JSON.
type runReport struct {
	out                   io.Writer
	asJSON, verbose, many bool
	terminal, color       bool
	width                 int // of the longest name

	cases, failed int
	results       []*suite.Result
}

func newRunReport(f *runFlags, suites []*suite.Suite, out io.Writer) *runReport {
	r := &runReport{out: out, asJSON: f.asJSON, verbose: f.verbose, many: len(suites) > 1, results: []*suite.Result{}}
	r.terminal = isTerminal(out) && !f.asJSON
	r.color = r.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	for _, s := range suites {
		for _, name := range s.Cases() {
			r.width = max(r.width, utf8.RuneCountInString(name))
		}
	}
	r.width = min(r.width, 80)
	return r
}

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// begin prints the suite's name where there are several.
func (r *runReport) begin(s *suite.Suite) {
	if r.many && !r.asJSON {
		fmt.Fprintf(r.out, "%s\n", s.File())
	}
}

// beginCase is suite.Options.Begin: on a terminal the case that runs is seen.
func (r *runReport) beginCase(name string) {
	if r.terminal {
		fmt.Fprintf(r.out, "...   %s", printable(name))
	}
}

// done is suite.Options.Done.
func (r *runReport) done(result *suite.Result) {
	r.cases++
	if !result.OK {
		r.failed++
	}
	if r.asJSON {
		r.results = append(r.results, result)
		return
	}
	r.line(result)
}

const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	plain = "\x1b[0m"
)

// paint colours text on terminals.
func (r *runReport) paint(color, text string) string {
	if !r.color {
		return text
	}
	return color + text + plain
}

// line prints one case, and why it failed.
func (r *runReport) line(c *suite.Result) {
	verdict := r.paint(green, "ok  ")
	if !c.OK {
		verdict = r.paint(red, "FAIL")
	}
	if r.terminal {
		fmt.Fprint(r.out, "\r\x1b[K")
	}
	name := printable(c.Name)
	fmt.Fprintf(r.out, "%s  %s%s  %7s\n", verdict, name, strings.Repeat(" ", max(0, r.width-utf8.RuneCountInString(name))), shortTime(c.Duration))
	for _, p := range c.Problems {
		fmt.Fprintf(r.out, "      %s\n", printable(p.String()))
		for _, line := range strings.Split(p.Diff, "\n") {
			if line != "" {
				fmt.Fprintf(r.out, "        %s\n", r.paintDiff(line))
			}
		}
	}
	r.log(c)
}

func (r *runReport) paintDiff(line string) string {
	switch line[0] {
	case '-':
		return r.paint(red, line)
	case '+':
		return r.paint(green, line)
	}
	return line
}

// log prints lines of a case that failed, or all of any case when asked.
func (r *runReport) log(c *suite.Result) {
	if c.OK && !r.verbose || len(c.Log) == 0 {
		return
	}
	if r.verbose || len(c.Log) <= shownLog {
		fmt.Fprintln(r.out, "      log")
		r.entries(c.Log)
		return
	}
	fmt.Fprintf(r.out, "      log, %d of %d lines; --verbose has all\n", shownLog, len(c.Log))
	last := c.Log[len(c.Log)-shownLast:]
	if first := c.Log[c.LastStep:]; len(first) > shownLog {
		r.entries(first[:shownFirst])
		fmt.Fprintln(r.out, "        ...")
	} else {
		last = c.Log[len(c.Log)-shownLog:]
	}
	r.entries(last)
}

func (r *runReport) entries(log []hostsim.LogEntry) {
	for _, e := range log {
		text := strings.ReplaceAll(printable(strings.TrimSpace(e.Message)), "\n", "\n          ")
		fmt.Fprintf(r.out, "        %s %s: %s\n", hostsim.ThreadName(e.Worker), e.Level, text)
	}
}

func shortTime(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// runJSON is what --json prints.
type runJSON struct {
	Cases    []*suite.Result   `json:"cases"`
	Passed   int               `json:"passed"`
	Failed   int               `json:"failed"`
	Coverage *hostsim.Coverage `json:"coverage,omitempty"`
}

// end prints the summary, and the coverage where it was gathered.
func (r *runReport) end(took time.Duration, coverage *hostsim.Coverage) error {
	if r.asJSON {
		out := json.NewEncoder(r.out)
		out.SetIndent("", "  ")
		return out.Encode(runJSON{r.results, r.cases - r.failed, r.failed, coverage})
	}
	s := "s"
	if r.cases == 1 {
		s = ""
	}
	_, err := fmt.Fprintf(r.out, "%d case%s, %d ok, %d failed, %s\n", r.cases, s, r.cases-r.failed, r.failed, shortTime(took))
	if coverage != nil {
		return r.printCoverage(coverage)
	}
	return err
}

// printCoverage shows each callback and host call with how often it ran, and host calls with what they answered.
func (r *runReport) printCoverage(c *hostsim.Coverage) error {
	callbacks, calls := 0, 0
	for _, l := range c.Callbacks {
		callbacks += int(min(l.Calls, 1))
	}
	for _, l := range c.HostCalls {
		calls += int(min(l.Calls, 1))
	}
	fmt.Fprintf(r.out, "\ncoverage: %d of %d callbacks, %d of %d host calls\n", callbacks, len(c.Callbacks), calls, len(c.HostCalls))
	var table strings.Builder
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, l := range c.Callbacks {
		fmt.Fprintf(t, "  %s\t%s\t\n", l.Name, orNever(l.Calls))
	}
	for _, l := range c.HostCalls {
		var answers []string
		for _, a := range l.Answers {
			answers = append(answers, fmt.Sprintf("%s %d", a.Status, a.Calls))
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", l.Name, orNever(l.Calls), strings.Join(answers, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(r.out, trailing.ReplaceAllString(table.String(), "\n"))
	return err
}

// trailing is what a column leaves behind where the last cell is empty.
var trailing = regexp.MustCompile(` +\n`)

func orNever(n uint64) string {
	if n == 0 {
		return "never"
	}
	return strconv.FormatUint(n, 10)
}
