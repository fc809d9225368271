package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// results are the numbers of all rounds.
type results struct {
	// series are by package, benchmark and unit ("plugin.Turn/turn=sticky/sessions=1000 ns/op"), in the order of rounds;
	// order is that of the file.
	series  map[string][]float64
	order   []string
	machine string
}

// module begins the name of each package.
const module = "github.com/pinwheel-proxy/pinwheel/"

// read reads a file in Go's benchmark format. Errors: what is not in that format and looks as if it were, and a file
// without results.
func read(r io.Reader, name string) (*results, error) {
	rs := &results{series: map[string][]float64{}}
	for in := benchfmt.NewReader(r, name); ; {
		if !in.Scan() {
			if err := in.Err(); err != nil {
				return nil, err
			}
			break
		}
		switch record := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, record
		case *benchfmt.Result:
			rs.add(record)
		}
	}
	if len(rs.order) == 0 {
		return nil, fmt.Errorf("%s has no results", name)
	}
	return rs, nil
}

func (rs *results) add(r *benchfmt.Result) {
	base, parts := r.Name.Parts()
	name := strings.TrimPrefix(r.GetConfig("pkg"), module) + "." + string(base)
	for _, part := range parts {
		if part[0] != '-' { // the number of CPUs is no part of what a ratio is between
			name += string(part)
		}
	}
	rs.machine = strings.Join([]string{r.GetConfig("goos"), r.GetConfig("goarch"), r.GetConfig("cpu")}, " ")
	for _, v := range r.Values {
		value, unit := v.Value, v.Unit
		if v.OrigUnit != "" { // ns/op, say, and not the seconds that the format's tools count in
			value, unit = v.OrigValue, v.OrigUnit
		}
		key := name + " " + unit
		if rs.series[key] == nil {
			rs.order = append(rs.order, key)
		}
		rs.series[key] = append(rs.series[key], value)
	}
}

// rounds is the number of rounds that all benchmarks have run in.
func (rs *results) rounds() int {
	least := len(rs.series[rs.order[0]])
	for _, s := range rs.series {
		least = min(least, len(s))
	}
	return least
}

// medians are the rows of all benchmarks.
func (rs *results) medians() (rows []row) {
	for _, key := range rs.order {
		name, unit, _ := strings.Cut(key, " ")
		rows = append(rows, rowOf(name, unit, rs.series[key]))
	}
	return rows
}

// rowOf needs one value or more.
func rowOf(name, unit string, values []float64) row {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	return row{Name: name, Unit: unit, Median: (s[(n-1)/2] + s[n/2]) / 2, Low: s[0], High: s[n-1]}
}
