package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string

	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"soft": soft}).Parse(pageHTML))
)

// soft is text that may be broken behind each underscore.
func soft(text string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(text), "_", "_<wbr>"))
}

// page is what page.html shows.
type page struct {
	CSS      template.CSS
	Trace    string
	Setup    []replay.Fact
	Seeds    string
	Policies []shown
	Runs     bool // whether any policy has a run
	Tiles    []tile
	Rows     []row
	*figures
	Details []details
	Terms   []term
}

// row is a metric in the table of all.
type row struct {
	Head  string
	Cells []cell
}

type cell struct {
	Median, Range string
	Best          bool
}

// HTML writes the report as one file that needs no other and no network: no script, pictures as SVG, light or dark as the
// reader's system is. Errors are those of w, or a chart's that cannot be drawn.
func HTML(w io.Writer, r *replay.Result) error {
	policies := shownPolicies(r)
	drawn, err := drawFigures(r, policies)
	if err != nil {
		return err
	}
	p := page{CSS: template.CSS(pageCSS), Seeds: seedText(r), Policies: policies, Tiles: tiles(r, policies), Rows: rows(r),
		figures: drawn, Details: detailsOf(policies), Terms: termsOf(r)}
	for _, f := range r.Setup {
		f.Name, f.Value = printable(f.Name), printable(f.Value)
		if f.Name == "trace" {
			p.Trace = f.Value
		}
		p.Setup = append(p.Setup, f)
	}
	p.Setup = append(p.Setup, replay.Fact{Name: "ideal hit rate", Value: number(finite(r.Ideal)*100, 1) + "%"})
	for _, s := range policies {
		p.Runs = p.Runs || s.Run != nil
	}
	return pageTemplate.Execute(w, p)
}

func rows(r *replay.Result) (out []row) {
	for i := range metrics {
		if metrics[i].name == homes && !anyHomes(r.Policies) {
			continue
		}
		c := newColumn(&metrics[i], r.Policies)
		line := row{Head: c.head()}
		for k, s := range c.cells {
			text := cell{Median: "-", Best: c.best(k)}
			if s.n > 0 {
				text.Median = c.text(s.median)
			}
			if s.n > 1 && c.text(s.min) != c.text(s.max) {
				text.Range = c.text(s.min) + " to " + c.text(s.max)
			}
			line.Cells = append(line.Cells, text)
		}
		out = append(out, line)
		if metrics[i].name == "wall" && len(c.cells) > 0 {
			line = row{Head: "wall by the first policy's"}
			for _, text := range ratios(&c) {
				line.Cells = append(line.Cells, cell{Median: text})
			}
			out = append(out, line)
		}
	}
	return out
}
