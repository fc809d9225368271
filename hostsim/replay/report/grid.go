package report

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// grid is aligned columns of text.
type grid []gridColumn

type gridColumn struct {
	cells []string // the head first
	right bool
}

func (c *gridColumn) width() (width int) {
	for _, cell := range c.cells {
		width = max(width, utf8.RuneCountInString(cell))
	}
	return width
}

// column adds a column; right aligns its head, too.
func (g *grid) column(head string, cells []string, right bool) {
	*g = append(*g, gridColumn{slices.Insert(alignRight(cells), 0, head), right})
}

// join puts cells behind those of the last column.
func (g *grid) join(more []string) {
	last := &(*g)[len(*g)-1]
	last.right = false
	for i := range more {
		last.cells[i+1] += " " + more[i]
	}
}

// write writes the columns behind first, and begins anew below where they are wider than longestLine.
func (g grid) write(b *strings.Builder, first gridColumn) {
	for len(g) > 0 {
		n, width := 0, first.width()
		for n < len(g) && (n == 0 || width+2+g[n].width() <= longestLine) {
			width += 2 + g[n].width()
			n++
		}
		b.WriteString("\n")
		writeColumns(b, append(grid{first}, g[:n]...))
		g = g[n:]
	}
}

func writeColumns(b *strings.Builder, g grid) {
	for row := range g[0].cells {
		var line strings.Builder
		for i := range g {
			if i > 0 {
				line.WriteString("  ")
			}
			cell := g[i].cells[row]
			if g[i].right {
				line.WriteString(strings.Repeat(" ", g[i].width()-utf8.RuneCountInString(cell)) + cell)
			} else {
				line.WriteString(pad(cell, g[i].width()))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// alignRight is cells, all as long as the longest.
func alignRight(cells []string) []string {
	width := (&gridColumn{cells: cells}).width()
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = strings.Repeat(" ", width-utf8.RuneCountInString(c)) + c
	}
	return out
}

// pad is text with spaces behind it.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
