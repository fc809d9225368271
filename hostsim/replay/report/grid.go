package report

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// grid is aligned columns of text. Each begins with the same number of lines of its head.
type grid []gridColumn

type gridColumn struct {
	cells []string
	right bool
}

func (c *gridColumn) width() (width int) {
	for _, cell := range c.cells {
		width = max(width, utf8.RuneCountInString(cell))
	}
	return width
}

// column adds a column of numbers under two lines of head.
func (g *grid) column(top, bottom string, cells []string) {
	if bottom == "" {
		top, bottom = "", top
	}
	*g = append(*g, gridColumn{slices.Insert(slices.Clone(cells), 0, top, bottom), true})
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
		if text := strings.TrimRight(line.String(), " "); text != "" {
			b.WriteString(text + "\n")
		}
	}
}

// pad is text with spaces behind it.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
