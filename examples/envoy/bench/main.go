// Bench measures what Pinwheel costs in a real Envoy, and what else costs at its place. Whatever is compared takes turns
// within one run, so that a busy machine disturbs all alike, and only ratios from such runs are compared later.
//
//	go run ./examples/envoy/bench [-only sticky,steps] [-rounds N] [-duration D] [-json FILE]
//	go run ./examples/envoy/bench -page
//
// Tables come on stdout, progress on stderr. -list names the experiments, -h the flags. docs/benchmarks.md shows the
// results in results/ and is made from them by -page; -update replaces those of the experiments that ran, and the page.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// settings come from the command line and are kept with the results.
type settings struct {
	Rounds      int           `json:"rounds"`
	Duration    time.Duration `json:"duration_ns"`
	Connections int           `json:"connections"`
	Sessions    int           `json:"sessions"`
	Pin         bool          `json:"cpu_pinned"`
	Small       bool          `json:"small,omitempty"`

	version string
	wasm    string
	beside  string
}

// command is what the program is to do.
type command struct {
	settings
	only    string
	json    string
	list    bool
	page    bool
	update  bool
	compare bool
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == loadCommand {
		exit(loadProcess(os.Stdin, os.Stdout))
	}
	var c command
	flag.StringVar(&c.only, "only", "", "names of experiments, with commas between; empty runs all")
	flag.BoolVar(&c.list, "list", false, "list the experiments and end")
	flag.IntVar(&c.Rounds, "rounds", 25, "rounds; each gives one value of every figure")
	flag.DurationVar(&c.Duration, "duration", 400*time.Millisecond, "time of each measurement in a round, in turns of about 100ms")
	flag.IntVar(&c.Connections, "connections", 16, "kept-alive connections, one request at a time on each")
	flag.IntVar(&c.Sessions, "sessions", 30000, "sessions that are pinned before measuring, where the experiment does not say")
	flag.BoolVar(&c.Small, "small", false, "small sizes: to see that everything works; the figures mean little")
	flag.StringVar(&c.version, "envoy", wheel.Versions[0], "Envoy version; $ENVOY overrides it with a binary of yours")
	flag.StringVar(&c.wasm, "wasm", "", "another build of Pinwheel; default dist/pinwheel.wasm of the checkout")
	flag.StringVar(&c.beside, "beside", "", "one more build, such as that before a change, to measure beside it in the experiments sticky and start")
	flag.BoolVar(&c.Pin, "pin", runtime.NumCPU() > 1, "run the gateway on CPU 0 and the load on CPU 1")
	flag.StringVar(&c.json, "json", "", "write the results to this file; - is stdout, then without tables")
	flag.BoolVar(&c.compare, "compare", true, "compare the ratios with the results that are kept")
	flag.BoolVar(&c.update, "update", false, "keep the results, and make the page anew")
	flag.BoolVar(&c.page, "page", false, "only make docs/benchmarks.md from the results that are kept")
	flag.Parse()
	if flag.NArg() > 0 || c.Rounds < 1 || c.Connections < 1 || c.Sessions < c.Connections || c.Duration <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(c.run(ctx, os.Stdout, os.Stderr))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (c command) run(ctx context.Context, out, progress io.Writer) error {
	root, err := envoytest.Root()
	if err != nil {
		return fmt.Errorf("%w; run the benchmark from the checkout", err)
	}
	if c.page {
		return writePage(root)
	}
	chosen, err := choose(c.only)
	if err != nil {
		return err
	}
	if c.list {
		for _, e := range chosen {
			fmt.Fprintf(out, "%-10s %s\n", e.name, e.title)
		}
		return nil
	}
	if c.update && c.beside != "" {
		return errors.New("bench: figures with -beside are not to be kept")
	}
	if c.update && c.Small {
		return errors.New("bench: figures of -small are not to be kept")
	}
	tables := out
	if c.json == "-" {
		tables = io.Discard
	}
	results, err := c.measure(ctx, root, chosen, tables, progress)
	if err != nil {
		return err
	}
	if c.compare {
		kept, err := readResults(root)
		if err != nil {
			return err
		}
		compare(tables, kept, results)
	}
	if c.json != "" {
		if err := writeJSON(c.json, out, results); err != nil {
			return err
		}
	}
	if !c.update {
		return nil
	}
	for _, r := range results {
		if err := r.keep(root); err != nil {
			return err
		}
	}
	return writePage(root)
}

// measure runs the experiments one after the other. Each table is printed when it is there, so that whoever stops a long
// run has something.
func (c command) measure(ctx context.Context, root string, chosen []experiment, out, progress io.Writer) ([]result, error) {
	b, err := newBench(ctx, c.settings, root, progress)
	if err != nil {
		return nil, err
	}
	defer b.close()
	var results []result
	for i, e := range chosen {
		r, err := b.perform(ctx, e, fmt.Sprintf("%s (%d of %d)", e.name, i+1, len(chosen)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		results = append(results, r)
		fmt.Fprintf(out, "%s\n%s\n%s\n", e.title, r.conditions(), table(r.Rows, plain))
	}
	return results, nil
}

func choose(only string) ([]experiment, error) {
	if only == "" {
		return experiments(), nil
	}
	var chosen []experiment
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(experiments(), func(e experiment) bool { return e.name == name })
		if i < 0 {
			return nil, fmt.Errorf("bench: no experiment %q; -list names them", name)
		}
		chosen = append(chosen, experiments()[i])
	}
	return chosen, nil
}

func writeJSON(name string, out io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if name == "-" {
		_, err = out.Write(text)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
