// Command bench reads rounds of Go benchmarks and prints what they say whatever the machine: ratios within one round.
//
// Its argument is a file in Go's benchmark format (golang.org/x/perf/benchfmt) with the results of all rounds, one round
// after the other, as make bench writes it. A ratio is taken in each round, between benchmarks that ran within it, and shown as
// the median of all rounds with the lowest and the highest. With -update the results become those that later runs are compared
// with, results.txt, and the medians of all benchmarks and ratios a table for other programs, results.json.
//
// It exits with 1 when the file cannot be read or lacks a benchmark that a ratio is taken of. A ratio beyond its aim is shown and
// is no error: this is a measurement and no test.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"text/tabwriter"
)

func main() {
	update := flag.Bool("update", false, "keep the results, for later runs to be compared with")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: bench [-update] RESULTS")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *update); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(path string, update bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	rs, err := read(f, path)
	if err != nil {
		return err
	}
	ratios, err := rs.ratios()
	if err != nil {
		return err
	}
	print(ratios)
	if !update {
		return nil
	}
	return keep(path, table{Rounds: rs.rounds(), Machine: rs.machine, Rows: append(ratios, rs.medians()...)})
}

// print shows ratios and their aims.
func print(ratios []row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nwithin one round\tmedian\tlow..high\taim")
	for _, r := range ratios {
		aim := ""
		if r.Most != nil {
			aim = fmt.Sprintf("at most %g", *r.Most)
			if r.Median > *r.Most {
				aim += ", missed"
			}
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f..%.2f\t%s\n", r.Name, r.Median, r.Low, r.High, aim)
	}
	w.Flush()
}

// table is results.json.
type table struct {
	// Rounds is how often each benchmark ran.
	Rounds int `json:"rounds"`
	// Machine is what the benchmarks said of it: goos, goarch and cpu.
	Machine string `json:"machine"`
	Rows    []row  `json:"rows"`
}

// row is one number: a benchmark's, in one of its units, or a ratio, in unit "x".
type row struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Most is the aim of a ratio, nil where there is none.
	Most *float64 `json:"most,omitempty"`
}

// keep writes results.txt and results.json in the working directory.
func keep(path string, t table) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile("results.txt", text, 0o644); err != nil {
		return err
	}
	return os.WriteFile("results.json", append(b, '\n'), 0o644)
}
