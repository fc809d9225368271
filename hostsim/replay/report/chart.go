package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/go-analyze/charts/chartdraw"
)

// chart is two axes and what draw puts between them. about says what is to be seen, for who cannot see it.
type chart struct {
	about          string
	width, height  int
	x, y           *scale
	xTicks, yTicks []chartdraw.Tick
	xName          string
	// grid draws lines at the ticks of x, y or both.
	gridX, gridY bool
	draw         func(p plane)
}

// plane is where a chart's data go: positions in the canvas.
type plane struct {
	*canvas
	box  chartdraw.Box
	x, y *scale
}

func (p plane) px(v float64) float64 { return float64(p.box.Left) + p.x.at(v) }
func (p plane) py(v float64) float64 { return float64(p.box.Bottom) - p.y.at(v) }

// series is a chart as chartdraw knows it. The secondary axis is the one on the left.
type series struct{ *chart }

func (s series) GetName() string               { return "" }
func (s series) GetYAxis() chartdraw.YAxisType { return chartdraw.YAxisSecondary }
func (s series) GetStyle() chartdraw.Style     { return chartdraw.Style{} }
func (s series) Validate() error               { return nil }

func (s series) Render(r chartdraw.Renderer, box chartdraw.Box, _, _ chartdraw.Range, _ chartdraw.Style) {
	p := plane{r.(*canvas), box, s.x, s.y}
	if s.gridY {
		for _, t := range s.yTicks {
			p.move(float64(box.Left), p.py(t.Value))
			p.line(float64(box.Right), p.py(t.Value))
		}
	}
	if s.gridX {
		for _, t := range s.xTicks {
			p.move(p.px(t.Value), float64(box.Top))
			p.line(p.px(t.Value), float64(box.Bottom))
		}
	}
	p.paint("lines")
	s.draw(p)
}

// svg is the chart as an element of a page.
func (c *chart) svg() (template.HTML, error) {
	style := func(class string) chartdraw.Style {
		return chartdraw.Style{ClassName: class, FontStyle: chartdraw.FontStyle{FontSize: 11}}
	}
	drawing := chartdraw.Chart{Width: c.width, Height: c.height, DPI: 72,
		Background:     chartdraw.Style{Padding: chartdraw.NewBox(8, 4, 16, 4)},
		XAxis:          chartdraw.XAxis{Name: c.xName, NameStyle: style("name"), TickStyle: style("tick-x"), Range: c.x, Ticks: c.xTicks, GridMajorStyle: chartdraw.Hidden(), GridMinorStyle: chartdraw.Hidden()},
		YAxis:          chartdraw.YAxis{Style: chartdraw.Hidden(), Range: &scale{max: 1}},
		YAxisSecondary: chartdraw.YAxis{TickStyle: style("tick-y"), Range: c.y, Ticks: c.yTicks, GridMajorStyle: chartdraw.Hidden(), GridMinorStyle: chartdraw.Hidden()},
		Series:         []chartdraw.Series{series{c}},
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, c.width, c.height, escaped(c.about))
	err := drawing.Render(func(width, height int) chartdraw.Renderer { return newCanvas(width, height) }, &out)
	if err != nil {
		return "", fmt.Errorf("report: %s: %w", c.about, err)
	}
	out.WriteString("</svg>")
	return template.HTML(out.String()), nil
}
