package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

const (
	resultsFile = fleet.Folder + "/bench/results.json"
	pageFile    = fleet.Folder + "/README.md"
	// The table of the page stands between these.
	begins, ends = "<!-- measured -->\n", "<!-- /measured -->\n"
)

// newRow sums up values, at least one. Four digits are kept: more say nothing.
func newRow(part, figure, unit string, values []float64) row {
	v := slices.Clone(values)
	slices.Sort(v)
	at := func(q float64) float64 {
		x := v[int(math.Round(q*float64(len(v)-1)))]
		x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
		return x
	}
	return row{part, figure, unit, at(0.5), at(0.25), at(0.75), len(v)}
}

// text is the figure as the table has it.
func (r row) text() string {
	s := short(r.Median)
	if r.Q1 != r.Q3 {
		s += " [" + short(r.Q1) + ".." + short(r.Q3) + "]"
	}
	if r.Unit != "" {
		s += " " + r.Unit
	}
	return s
}

// short has three digits.
func short(x float64) string {
	if x != math.Trunc(x) && math.Abs(x) < 100 {
		digits := 2 - int(math.Floor(math.Log10(math.Abs(x))))
		return strconv.FormatFloat(x, 'f', min(max(digits, 0), 3), 64)
	}
	s := strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// table is Markdown, aligned.
func (r result) table() string {
	var out strings.Builder
	width, value := 0, 0
	for _, row := range r.Rows {
		width, value = max(width, len(row.Figure)), max(value, len(row.text()))
	}
	part := ""
	for _, row := range r.Rows {
		if row.Part != part {
			if part != "" {
				out.WriteString("\n")
			}
			part = row.Part
			width := max(width, len(part))
			fmt.Fprintf(&out, "| %-*s | %*s |\n|%s|%s:|\n", width, part, value, "", strings.Repeat("-", width+2), strings.Repeat("-", value+1))
		}
		fmt.Fprintf(&out, "| %-*s | %*s |\n", max(width, len(part)), row.Figure, value, row.text())
	}
	return out.String()
}

// section is what the page has of the results.
func (r result) section() string {
	return r.table() + fmt.Sprintf("\n`%s`, %s: %d CPUs for two gateways, etcd, replicas and load, load average before %s; Envoy %s, etcd %s; medians\n"+
		"[quartiles of %d rounds].\n", r.Command, r.Date, r.CPUs, short(r.Busy), r.Envoy, r.Etcd, r.Rounds)
}

func readResults(root string) (r result, err error) {
	text, err := os.ReadFile(filepath.Join(root, resultsFile))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// page returns the page with the section in it.
func page(text string, r result) (string, error) {
	before, rest, ok := strings.Cut(text, begins)
	_, after, found := strings.Cut(rest, ends)
	if !ok || !found {
		return "", errors.New("README.md has no place for what was measured")
	}
	return before + begins + "\n" + r.section() + "\n" + ends + after, nil
}

func writePage(root string) error {
	r, err := readResults(root)
	if err != nil {
		return err
	}
	name := filepath.Join(root, pageFile)
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text, err := page(string(old), r)
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
