package main

import (
	"encoding/json"
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
	pageFile    = "docs/many-gateways.md"
)

// newRow sums up values, at least one. Four digits are kept: more say nothing.
func newRow(part, of, figure, unit string, values []float64) row {
	v := slices.Clone(values)
	slices.Sort(v)
	at := func(q float64) float64 {
		place := q * float64(len(v)-1)
		i := int(place)
		x := v[i]
		if i+1 < len(v) { // between neighbours in proportion
			x += (v[i+1] - v[i]) * (place - float64(i))
		}
		x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
		return x
	}
	return row{part, of, figure, unit, at(0.5), at(0.25), at(0.75), len(v)}
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

// table is a part in Markdown, aligned: a line for each case and a column for each figure or, without cases, a line for each figure.
func (r result) table(part string) string {
	var cases, figures []string
	cells := map[[2]string]row{}
	for _, row := range r.Rows {
		if row.Part != part {
			continue
		}
		if !slices.Contains(cases, row.Case) {
			cases = append(cases, row.Case)
		}
		if !slices.Contains(figures, row.Figure) {
			figures = append(figures, row.Figure)
		}
		cells[[2]string{row.Case, row.Figure}] = row
	}
	var grid [][]string
	if len(cases) == 1 && cases[0] == "" {
		grid = append(grid, []string{"", ""})
		for _, f := range figures {
			grid = append(grid, []string{f, cells[[2]string{"", f}].text()})
		}
	} else {
		grid = append(grid, append([]string{""}, figures...))
		for _, c := range cases {
			line := []string{c}
			for _, f := range figures {
				text := ""
				if row, ok := cells[[2]string{c, f}]; ok {
					text = row.text()
				}
				line = append(line, text)
			}
			grid = append(grid, line)
		}
	}
	return aligned(grid)
}

func aligned(grid [][]string) string {
	width := make([]int, len(grid[0]))
	for _, line := range grid {
		for i, cell := range line {
			width[i] = max(width[i], len(cell), 3)
		}
	}
	var out strings.Builder
	for n, line := range grid {
		for i, cell := range line {
			if i == 0 {
				fmt.Fprintf(&out, "| %-*s |", width[i], cell)
			} else {
				fmt.Fprintf(&out, " %*s |", width[i], cell)
			}
		}
		out.WriteString("\n")
		if n > 0 {
			continue
		}
		for i, w := range width {
			if i == 0 {
				out.WriteString("|" + strings.Repeat("-", w+2) + "|")
			} else {
				out.WriteString(strings.Repeat("-", w+1) + ":|")
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// section is what the page has of a part.
func (r result) section(part string) string {
	return r.table(part) + fmt.Sprintf("\n`%s -only %s`, %s: %d CPUs for gateways, etcd, replicas and load, load average before %s;\n"+
		"Envoy %s, etcd %s; medians [quartiles] of up to %d rounds.\n", r.Command, part, r.Date, r.CPUs, short(r.Busy), r.Envoy, r.Etcd, r.Rounds)
}

func readResults(root string) (r result, err error) {
	text, err := os.ReadFile(filepath.Join(root, resultsFile))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// page returns the page with what was measured in its places, each behind a mark with the part's name.
func page(text string, r result) (string, error) {
	for _, p := range parts {
		begins, ends := "<!-- "+p.name+" -->\n", "<!-- /"+p.name+" -->\n"
		before, after, ok := strings.Cut(text, begins)
		if !ok {
			return "", fmt.Errorf("%s has no place %q", pageFile, begins)
		}
		if _, rest, ok := strings.Cut(after, ends); ok {
			after = rest
		}
		text = before + begins + "\n" + r.section(p.name) + "\n" + ends + after
	}
	return text, nil
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
