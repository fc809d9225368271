package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-analyze/charts/chartdraw"
)

// canvas draws what chartdraw draws as SVG for a page: looks are classes of the page's style sheet, so that they follow light
// and dark, and coordinates have fractions. The renderer inside measures text.
type canvas struct {
	chartdraw.Renderer
	width, height int
	class         string
	path, out     strings.Builder
}

func newCanvas(width, height int) *canvas {
	return &canvas{Renderer: chartdraw.SVG(width, height), width: width, height: height}
}

func (c *canvas) SetClassName(class string) {
	c.class = class
	c.Renderer.SetClassName(class)
}

func (c *canvas) ResetStyle() {
	c.class = ""
	c.Renderer.ResetStyle()
}

func (c *canvas) MoveTo(x, y int) { c.move(float64(x), float64(y)) }
func (c *canvas) LineTo(x, y int) { c.line(float64(x), float64(y)) }
func (c *canvas) Close()          { c.path.WriteByte('Z') }
func (c *canvas) Stroke()         { c.paint(c.class) }
func (c *canvas) Fill()           { c.paint(c.class) }
func (c *canvas) FillStroke()     { c.paint(c.class) }

// Of chartdraw's drawings those that are used here draw neither curves nor circles.
func (c *canvas) QuadCurveTo(_, _, _, _ int)         {}
func (c *canvas) ArcTo(_, _ int, _, _, _, _ float64) {}
func (c *canvas) Circle(radius float64, x, y int)    {}
func (c *canvas) SetTextRotation(radians float64)    {}
func (c *canvas) ClearTextRotation()                 {}

// Text writes at the baseline's left end, as chartdraw asks. The ticks of axes are anchored where they belong, so that a
// reader's other font does not move them.
func (c *canvas) Text(body string, x, y int) {
	width := c.MeasureText(body).Width()
	switch at := float64(x); c.class {
	case "tick-x", "name":
		c.label(body, at+float64(width)/2, float64(y), "middle", c.class)
	case "tick-y":
		c.label(body, at+float64(width), float64(y), "end", c.class)
	default:
		c.label(body, at, float64(y), "start", c.class)
	}
}

// MeasureText is somewhat more than the text needs in chartdraw's font: readers have wider ones.
func (c *canvas) MeasureText(text string) chartdraw.Box {
	box := c.Renderer.MeasureText(text)
	box.Right = box.Left + (box.Width()*6+4)/5
	return box
}

func (c *canvas) Save(w io.Writer) error {
	_, err := io.WriteString(w, c.out.String())
	return err
}

func (c *canvas) move(x, y float64) { c.path.WriteString("M" + pair(x, y)) }
func (c *canvas) line(x, y float64) { c.path.WriteString("L" + pair(x, y)) }

// rect adds a rectangle to the path.
func (c *canvas) rect(x, y, width, height float64) {
	c.path.WriteString("M" + pair(x, y) + "h" + coordinate(width) + "v" + coordinate(height) + "h" + coordinate(-width) + "z")
}

// dot adds a full circle to the path.
func (c *canvas) dot(x, y, r float64) {
	c.path.WriteString("M" + pair(x-r, y) + "a" + pair(r, r) + " 0 1 0 " + pair(2*r, 0) + "a" + pair(r, r) + " 0 1 0 " + pair(-2*r, 0) + "z")
}

// paint draws the path with the looks of a class; without one it is thrown away, as are chartdraw's backgrounds.
func (c *canvas) paint(class string) { c.paintTitled(class, "") }

// paintTitled draws the path, with a title for who points at it.
func (c *canvas) paintTitled(class, title string) {
	d := c.path.String()
	c.path.Reset()
	if class == "" || d == "" {
		return
	}
	if title == "" {
		fmt.Fprintf(&c.out, `<path class="%s" d="%s"/>`, class, d)
		return
	}
	fmt.Fprintf(&c.out, `<path class="%s" d="%s"><title>%s</title></path>`, class, d, escaped(title))
}

func (c *canvas) label(text string, x, y float64, anchor, class string) {
	fmt.Fprintf(&c.out, `<text x="%s" y="%s" text-anchor="%s" class="%s">%s</text>`, coordinate(x), coordinate(y), anchor, class, escaped(text))
}

// escaped is text that may stand in an element of HTML.
func escaped(text string) string { return html.EscapeString(printable(text)) }

func pair(x, y float64) string {
	second := coordinate(y)
	if strings.HasPrefix(second, "-") {
		return coordinate(x) + second
	}
	return coordinate(x) + " " + second
}

// coordinate is v to a tenth.
func coordinate(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', -1, 64)
}
