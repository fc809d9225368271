package main

import (
	"context"
	"fmt"
	"math/bits"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The arms, as they appear in reports.
const (
	bare         = "bare"
	withFloor    = "floor"
	withPinwheel = "pinwheel"
)

// manyWorkers is the concurrency of a second, short-lived start that tells what
// one more worker costs in memory.
const manyWorkers = 5

// arm is one Envoy of the comparison: all run the user's envoy.yaml, with
// another wasm or without.
type arm struct {
	name   string
	binary string
	dir    string
	text   envoytest.Bootstrap
	wasm   string // path; empty for no plugin

	addr   string
	envoy  *envoytest.Envoy
	rounds []round

	wasmBytes      int64
	startUp        time.Duration // exec to ready, one worker
	resident       int64         // at ready, one worker
	residentLoaded int64         // after the measurements
	perWorker      int64         // bytes for each further worker, at ready
}

// round is one measurement.
type round struct {
	cpu  float64 // microseconds of CPU per request
	rate float64 // requests per second
}

// start brings up the arm, and once more with many workers to size them. Nothing
// else may run meanwhile: start-up time is a result.
func (a *arm) start(ctx context.Context, s settings, replicas []string) error {
	config, err := a.config(s, replicas)
	if err != nil {
		return fmt.Errorf("%s: %w", a.name, err)
	}
	if a.wasm != "" {
		fi, err := os.Stat(a.wasm)
		if err != nil {
			return err
		}
		a.wasmBytes = fi.Size()
	}
	o := envoytest.Options{Binary: a.binary, Bootstrap: config, Concurrency: manyWorkers}
	many, err := envoytest.Start(ctx, o)
	if err != nil {
		return err
	}
	manyResident, err := envoytest.ResidentBytes(many.Pid())
	many.Stop()
	if err != nil {
		return err
	}
	o.Concurrency = 1
	if a.envoy, err = envoytest.Start(ctx, o); err != nil {
		return err
	}
	a.startUp = a.envoy.StartUp
	if a.resident, err = envoytest.ResidentBytes(a.envoy.Pid()); err != nil {
		return err
	}
	a.perWorker = (manyResident - a.resident) / (manyWorkers - 1)
	return nil
}

// config writes the arm's bootstrap and returns its path.
func (a *arm) config(s settings, replicas []string) (string, error) {
	port, err := envoytest.FreePort()
	if err != nil {
		return "", err
	}
	a.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	ports := [][2]int{{10000, port}, {9901, 0}}
	for i, r := range replicas {
		_, p, err := net.SplitHostPort(r)
		if err != nil {
			return "", err
		}
		n, err := strconv.Atoi(p)
		if err != nil {
			return "", err
		}
		ports = append(ports, [2]int{8001 + i, n})
	}
	text := a.text
	for _, p := range ports {
		if text, err = text.Port(p[0], p[1]); err != nil {
			return "", err
		}
	}
	if a.wasm == "" {
		text, err = text.WithoutFilter("pinwheel")
	} else if text, err = text.Wasm(a.wasm); err == nil {
		text, err = text.Plugin(func(c map[string]any) {
			c["replicas"] = replicas
			c["debug_headers"] = false
			// A table that is nearly full: a turn then reads a shard of about 1 KB.
			session := map[string]any{"max_sessions": tableFor(s.Sessions)}
			if s.InBody {
				session["body"] = []string{"user"}
			}
			c["session"] = session
		})
		if err == nil && s.InBody {
			text, err = text.ShowBodies()
		}
	}
	if err != nil {
		return "", err
	}
	name := filepath.Join(a.dir, a.name+".yaml")
	return name, os.WriteFile(name, []byte(text), 0o644)
}

// tableFor is the smallest power of two that holds the sessions with some room.
func tableFor(sessions int) int { return 1 << bits.Len(uint(sessions+sessions/16)) }

// finish takes the figures that belong after the load, and checks that what was
// measured was sticky turns.
func (a *arm) finish(ctx context.Context, s settings) error {
	var err error
	if a.residentLoaded, err = envoytest.ResidentBytes(a.envoy.Pid()); err != nil || a.name != withPinwheel {
		return err
	}
	const decisions = "wasmcustom.pinwheel_decisions_total.pool.default.policy.sticky_least_loaded.reason."
	stats, err := a.envoy.Admin.Stats(ctx, `^wasmcustom\.pinwheel_decisions_total`)
	if err != nil {
		return err
	}
	var total uint64
	for _, n := range stats {
		total += n
	}
	pinned, placed := stats[decisions+"pinned"], stats[decisions+"placed"]
	if placed > uint64(s.Sessions) || pinned == 0 || pinned*100 < (total-placed)*99 {
		return fmt.Errorf("bench: not a run of sticky turns: %v", stats)
	}
	return nil
}

func (a *arm) stop() {
	if a.envoy != nil {
		a.envoy.Stop()
	}
}
