// Bench measures what Pinwheel costs in a real Envoy: CPU per request of Envoy
// alone, with the floor (the least that such a plugin can cost, see floor/) and
// with Pinwheel, on turns of sessions that are pinned already. The three take
// turns within one run, so that a busy machine disturbs all alike.
//
//	go run ./examples/envoy/bench [--rounds N] [--duration D] [--json]
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
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// settings come from the command line.
type settings struct {
	Version     string
	Wasm        string
	Rounds      int
	Duration    time.Duration
	Connections int
	Sessions    int
	Body        int
	InBody      bool
	MaxRatio    float64
	JSON        bool
	Pin         bool
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == loadCommand {
		exit(loadProcess(os.Stdin, os.Stdout))
	}
	var s settings
	flag.StringVar(&s.Version, "envoy", wheel.Versions[0], "Envoy version; $ENVOY overrides it with a binary of yours")
	flag.StringVar(&s.Wasm, "wasm", "", "another build of Pinwheel; default dist/pinwheel.wasm of the checkout")
	flag.IntVar(&s.Rounds, "rounds", 21, "rounds; each measures every arm once")
	flag.DurationVar(&s.Duration, "duration", time.Second, "length of one measurement")
	flag.IntVar(&s.Connections, "connections", 16, "kept-alive connections, one request at a time on each")
	flag.IntVar(&s.Sessions, "sessions", 30000, "sessions that are pinned before measuring")
	flag.IntVar(&s.Body, "body", 0, "bytes of each request's JSON body, 64 or more; 0 sends GET without one")
	flag.BoolVar(&s.InBody, "in-body", false, "name the session in the body, not in a header (the floor then does nothing)")
	flag.Float64Var(&s.MaxRatio, "max-ratio", 0, "fail if Pinwheel adds more than this many times what the floor adds; 0 only reports")
	flag.BoolVar(&s.JSON, "json", false, "print JSON")
	flag.BoolVar(&s.Pin, "pin", runtime.NumCPU() > 1, "run Envoy on CPU 0 and the load on CPU 1")
	flag.Parse()
	if flag.NArg() > 0 || s.Rounds < 1 || s.Connections < 1 || s.Sessions < s.Connections || s.Duration <= 0 ||
		s.Body < 64 && (s.Body != 0 || s.InBody) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(bench(ctx, s, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func bench(ctx context.Context, s settings, out io.Writer) error {
	dir, err := os.MkdirTemp("", "pinwheel-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	arms, err := plan(ctx, s, dir)
	if err != nil {
		return err
	}
	load, err := startLoad()
	if err != nil {
		return err
	}
	defer load.stop()
	for _, a := range arms {
		defer a.stop()
		if err := a.start(ctx, s, load.replicas); err != nil {
			return err
		}
	}
	if s.Pin {
		// After the start: compiling uses all CPUs.
		if err := pinApart(load, arms); err != nil {
			return fmt.Errorf("%w; try --pin=false", err)
		}
	}
	if err := measure(ctx, s, load, arms); err != nil {
		return err
	}
	version, err := envoyVersion(arms[0].binary)
	if err != nil {
		return err
	}
	r := newReport(s, arms, version)
	if s.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	} else {
		err = r.print(out)
	}
	if err == nil && s.MaxRatio > 0 && r.Ratio > s.MaxRatio {
		err = fmt.Errorf("bench: Pinwheel adds %.2f times what the floor adds, the limit is %g", r.Ratio, s.MaxRatio)
	}
	return err
}

func pinApart(load *load, arms []*arm) error {
	const envoyCPU, loadCPU = 0, 1
	for _, a := range arms {
		if err := envoytest.Pin(a.envoy.Pid(), envoyCPU); err != nil {
			return err
		}
	}
	return envoytest.Pin(load.cmd.Process.Pid, loadCPU)
}

// plan finds Envoy and the modules and decides the arms, bare Envoy first.
func plan(ctx context.Context, s settings, dir string) ([]*arm, error) {
	root, err := envoytest.Root()
	if err != nil {
		return nil, fmt.Errorf("%w; run the benchmark from the checkout", err)
	}
	bin, err := wheel.Find(ctx, s.Version)
	if err != nil {
		return nil, err
	}
	pinwheel := s.Wasm
	if pinwheel == "" {
		if pinwheel, err = envoytest.Wasm(root); err != nil {
			return nil, err
		}
	}
	floor, err := buildFloor(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	if err := sameCallbacks(floor, pinwheel); err != nil {
		return nil, err
	}
	text, err := envoytest.LoadBootstrap(filepath.Join(root, "examples", "envoy", "envoy.yaml"))
	if err != nil {
		return nil, err
	}
	base := arm{binary: bin, dir: dir, text: text}
	arms := make([]*arm, 3)
	for i, name := range []string{bare, withFloor, withPinwheel} {
		a := base
		a.name, a.wasm = name, []string{"", floor, pinwheel}[i]
		arms[i] = &a
	}
	return arms, nil
}

// order is that of one measurement.
func (s settings) order(addr string) order {
	return order{Addr: addr, Connections: s.Connections, Sessions: s.Sessions, Body: s.Body, InBody: s.InBody, Duration: s.Duration}
}

// measure pins the sessions, then lets the arms take turns.
func measure(ctx context.Context, s settings, load *load, arms []*arm) error {
	for _, a := range arms {
		o := s.order(a.addr)
		o.Requests = s.Sessions
		if _, err := load.run(o); err != nil {
			return err
		}
	}
	for range s.Rounds {
		for _, a := range arms {
			if ctx.Err() != nil {
				return errors.New("bench: interrupted")
			}
			before, err := cpuTime(a.envoy.Pid())
			if err != nil {
				return err
			}
			t, err := load.run(s.order(a.addr))
			if err != nil {
				return fmt.Errorf("%w\n%s", err, a.envoy.Log.Tail(20))
			}
			after, err := cpuTime(a.envoy.Pid())
			if err != nil {
				return err
			}
			a.rounds = append(a.rounds, round{
				cpu:  float64(after-before) / float64(time.Microsecond) / float64(t.Requests),
				rate: float64(t.Requests) / t.Elapsed.Seconds(),
			})
		}
	}
	for _, a := range arms {
		if err := a.finish(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
