package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The page shows the results that are kept.
func TestPage(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	r, err := readResults(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := page(string(text), r)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(text) {
		t.Errorf("%s is not made from %s: go run ./examples/many-gateways/bench -page", pageFile, resultsFile)
	}
	for _, p := range parts {
		if !strings.Contains(r.table(p.name), "|") || len(strings.Split(r.table(p.name), "\n")) < 4 {
			t.Errorf("nothing measured of %s:\n%s", p.name, r.table(p.name))
		}
	}
}

func TestTable(t *testing.T) {
	r := result{Rows: []row{
		newRow("p", "one", "time", "ms", []float64{3, 1, 2.345678}), newRow("p", "one", "n", "", []float64{12345}),
		newRow("p", "other", "time", "ms", []float64{0.0123}), newRow("q", "", "time", "ms", []float64{7}),
	}}
	if got, want := r.table("p"), ""+
		"|       |                 time |      n |\n"+
		"|-------|---------------------:|-------:|\n"+
		"| one   | 2.35 [1.67..2.67] ms | 12,340 |\n"+
		"| other |             0.012 ms |        |\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := r.table("q"), ""+
		"|      |      |\n"+
		"|------|-----:|\n"+
		"| time | 7 ms |\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
