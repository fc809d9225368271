package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// source is the data source that the variable of that name chooses.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// Labels that every query of a kind is narrowed by; %G, %P, %C and %E stand for them in queries.
var selectors = strings.NewReplacer(
	"%G", `job=~"$job",instance=~"$gateway"`,
	"%P", `job=~"$job",instance=~"$gateway",pool=~"$pool"`,
	"%C", `job=~"$job",instance=~"$gateway",envoy_cluster_name=~"$cluster"`,
	"%E", `job=~"$engines"`,
	"%I", "$__rate_interval",
)

// query is one query of a panel and the legend of its series, {{label}} in it.
type query struct{ expr, legend string }

func (q query) build(id int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source).RefId(string(rune('A' + id))).
		Expr(selectors.Replace(q.expr)).LegendFormat(q.legend).EditorMode(prometheus.QueryEditorModeCode).Range()
}

// level is a value from which on a number has a colour.
type level struct {
	from  float64
	color string
}

// levels are steps of thresholds, the first of which is green.
func levels(above ...level) cog.Builder[dashboard.ThresholdsConfig] {
	steps := []dashboard.Threshold{{Color: "green"}}
	for _, l := range above {
		steps = append(steps, dashboard.Threshold{Value: cog.ToPtr(l.from), Color: l.color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// number is a panel of one big figure, a sixth of the page wide.
func number(title, about, unit string, decimals float64, q query, colors cog.Builder[dashboard.ThresholdsConfig]) cog.Builder[dashboard.Panel] {
	return stat.NewPanelBuilder().Title(title).Description(about).Datasource(source).
		Height(4).Span(4).Unit(unit).Decimals(decimals).Thresholds(colors).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)).
		GraphMode(common.BigValueGraphModeArea).ColorMode(common.BigValueColorModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		WithTarget(q.build(0))
}

// graph is a panel of lines over time. Width is in columns of 24.
func graph(title, about, unit string, width uint32, queries ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().Title(title).Description(about).Datasource(source).
		Height(8).Span(width).Unit(unit).Min(0).LineWidth(1).FillOpacity(10).
		ShowPoints(common.VisibilityModeNever).SpanNulls(common.BoolOrFloat64{Bool: cog.ToPtr(false)}).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassicByName)).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).
			Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	for i, q := range queries {
		p = p.WithTarget(q.build(i))
	}
	return p
}

// stacked puts a graph's series on top of each other: their sum is a figure of its own.
func stacked(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.FillOpacity(40).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// steps draws a graph of values that jump.
func steps(p *timeseries.PanelBuilder) *timeseries.PanelBuilder {
	return p.LineInterpolation(common.LineInterpolationStepAfter)
}

// variable is one that the data source fills with the values of a label. All of them are chosen at first.
func variable(name, label, values string) cog.Builder[dashboard.VariableModel] {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(source).
		Query(dashboard.StringOrMap{String: cog.ToPtr(values)}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{
			Selected: cog.ToPtr(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
}
