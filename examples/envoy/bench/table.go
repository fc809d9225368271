package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// style is how a table is written.
type style int

const (
	plain    style = iota // for a terminal
	markdown              // aligned, so that its text is a table too
)

// table shows rows: a line for each case and arm, a column for each figure, all in the order in which they first appear.
func table(rows []row, s style) string {
	var figures []string
	units := map[string]string{}
	type line struct{ of, arm string }
	var lines []line
	cells := map[[3]string]string{}
	cases, arms := false, false
	for _, r := range rows {
		if !slices.Contains(figures, r.Figure) {
			figures = append(figures, r.Figure)
			units[r.Figure] = r.Unit
		}
		if l := (line{r.Case, r.Arm}); !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
		cases, arms = cases || r.Case != "", arms || r.Arm != ""
		cells[r.key()] = r.text()
	}
	var grid [][]string
	head := []string{}
	if cases {
		head = append(head, "")
	}
	if arms {
		head = append(head, "")
	}
	left := len(head)
	for _, f := range figures {
		if u := units[f]; u != "" && u != times {
			f += ", " + u
		}
		head = append(head, f)
	}
	grid = append(grid, head)
	last := ""
	for _, l := range lines {
		var g []string
		if cases {
			of := l.of
			if of == last {
				of = "" // said above
			}
			last = l.of
			g = append(g, of)
		}
		if arms {
			g = append(g, l.arm)
		}
		for _, f := range figures {
			g = append(g, cells[[3]string{l.of, l.arm, f}])
		}
		grid = append(grid, g)
	}
	if s == markdown {
		return markdownTable(grid, left)
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, g := range grid {
		fmt.Fprintln(w, strings.Join(g, "\t"))
	}
	w.Flush()
	return out.String()
}

// markdownTable writes a table whose first line is its head, the first columns to the left and the others to the right.
func markdownTable(grid [][]string, left int) string {
	width := make([]int, len(grid[0]))
	for _, g := range grid {
		for i, c := range g {
			width[i] = max(width[i], utf8.RuneCountInString(c), 3)
		}
	}
	var out strings.Builder
	for n, g := range grid {
		for i, c := range g {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i < left {
				out.WriteString("| " + c + pad + " ")
			} else {
				out.WriteString("| " + pad + c + " ")
			}
		}
		out.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i := range g {
			if i < left {
				out.WriteString("|" + strings.Repeat("-", width[i]+2))
			} else {
				out.WriteString("|" + strings.Repeat("-", width[i]+1) + ":")
			}
		}
		out.WriteString("|\n")
	}
	return out.String()
}

// text is the figure with its quartiles.
func (r row) text() string {
	if r.Q1 == r.Median && r.Q3 == r.Median {
		return number(r.Median)
	}
	return fmt.Sprintf("%s [%s..%s]", number(r.Median), number(r.Q1), number(r.Q3))
}

// number shows three digits or, of large numbers, all before the point.
func number(x float64) string {
	digits := 2
	switch a := math.Abs(x); {
	case a == math.Trunc(a) || a >= 100:
		digits = 0
	case a >= 10:
		digits = 1
	}
	text := fmt.Sprintf("%.*f", digits, x)
	whole, part, point := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		whole = whole[1:]
		if strings.Trim(text, "-0.") != "" {
			sign = "-"
		}
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + part
	}
	return sign + whole
}
