package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// group is the tests of one source file.
type group struct {
	name  string // the file's, without _test.go
	tests []string
}

var declared = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(t \*testing\.T\)`)

// groupsOf are the tests that the files declare.
func groupsOf(files []string) (groups []group, err error) {
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		g := group{name: strings.ReplaceAll(strings.TrimSuffix(filepath.Base(name), "_test.go"), "_", " ")}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			g.tests = append(g.tests, m[1])
		}
		if g.tests != nil {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

// column is what came of the tests on one version.
type column struct {
	version string
	passed  map[string]bool    // by test; one that was skipped, or never ended, has not passed
	seconds map[string]float64 // by test, without the wait for a gateway
	failed  bool               // the whole run
	took    time.Duration
}

// event is a line of `go test -json`. Source: https://pkg.go.dev/cmd/test2json
type event struct {
	Action, Test, Output, Key, Value string
	Elapsed                          float64
}

// ownSeconds is the attribute by which a test tells how long it had its gateway.
const ownSeconds = "own-seconds"

// read collects the events, and copies to show what tests that fail have printed, and what no test has.
func read(version string, events io.Reader, show io.Writer) (*column, error) {
	c := &column{version: version, passed: map[string]bool{}, seconds: map[string]float64{}}
	said, own := map[string]*strings.Builder{}, map[string]bool{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		var e event
		if json.Unmarshal(line, &e) != nil { // the compiler's
			fmt.Fprintf(show, "%s", line)
			continue
		}
		top, _, _ := strings.Cut(e.Test, "/")
		switch e.Action {
		case "output", "build-output":
			if said[e.Test] == nil {
				said[e.Test] = &strings.Builder{}
			}
			said[e.Test].WriteString(e.Output)
		case "attr":
			if s, err := strconv.ParseFloat(e.Value, 64); err == nil && e.Key == ownSeconds {
				c.seconds[top] += s
				own[top] = true
			}
		case "pass", "fail", "skip":
			if e.Test == top && !own[top] {
				c.seconds[top] = e.Elapsed
			}
			if e.Test != "" && e.Test == top {
				c.passed[top] = e.Action == "pass"
			}
			if b := said[e.Test]; b != nil && e.Action != "pass" {
				fmt.Fprint(show, b)
			}
		}
	}
}

// whole reports whether the run succeeded and every test has passed.
func (c *column) whole(groups []group) bool {
	return !c.failed && !slices.ContainsFunc(groups, func(g group) bool { n, _ := c.of(g); return n < len(g.tests) })
}

// of counts the tests of a group that have passed, and adds up their seconds.
func (c *column) of(g group) (passed int, seconds float64) {
	for _, t := range g.tests {
		if c.passed[t] {
			passed++
		}
		seconds += c.seconds[t]
	}
	return passed, seconds
}

// table has a line for each group and a column for each version. Seconds of tests that ran side by side add up to more
// than the time that the whole took, which the last line tells.
func table(groups []group, columns []*column) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "tests")
	for _, c := range columns {
		fmt.Fprint(w, "\t", c.version)
	}
	for _, g := range groups {
		fmt.Fprint(w, "\n", g.name)
		for _, c := range columns {
			n, s := c.of(g)
			fmt.Fprint(w, "\t", cell(n, len(g.tests), n == len(g.tests), s))
		}
	}
	fmt.Fprint(w, "\nall, elapsed")
	for _, c := range columns {
		n, all := 0, 0
		for _, g := range groups {
			passed, _ := c.of(g)
			n, all = n+passed, all+len(g.tests)
		}
		fmt.Fprint(w, "\t", cell(n, all, c.whole(groups), c.took.Seconds()))
	}
	fmt.Fprintln(w)
	w.Flush()
	return b.String()
}

func cell(passed, all int, ok bool, seconds float64) string {
	if !ok {
		return fmt.Sprintf("FAIL %d/%d %.0fs", passed, all, seconds)
	}
	return fmt.Sprintf("pass %d/%d %.0fs", passed, all, seconds)
}
