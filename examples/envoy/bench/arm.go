package main

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// Arms and modules, as they appear in results.
const (
	bare         = "bare"     // Envoy without a plugin
	withEmpty    = "empty"    // official Go's wasm with Pinwheel's callbacks, none of which does anything
	withFloor    = "floor"    // the least that such a plugin can cost, see floor/
	withPinwheel = "pinwheel" // the plugin
	beside       = "beside"   // another build of it
)

// arm is something that requests go through: an Envoy, alone or with other processes that serve it.
type arm struct {
	name  string
	addr  string           // host:port for the load
	envoy *envoytest.Envoy // nil for an arm without one; several arms may share one, as listeners
	also  []int            // further processes whose CPU is the arm's
	after []func()         // what ends with the arm, the last first
}

// gateway says which Envoy to start: the user's envoy.yaml, changed.
type gateway struct {
	name     string
	wasm     string   // path; empty takes the plugin out
	workers  int      // threads; 0 is 1
	free     bool     // not held to a CPU, also in a pinned run; more than one worker never is
	replicas []string // 127.0.0.1:PORT each; nil are the first three of the load process
	// sessions is how many the plugin's table is laid out for; 0 are the settings'. The table is then nearly full, and a
	// turn reads a shard of about 1 KB.
	sessions int
	plugin   map[string]any // further keys of the plugin's configuration
	// edit changes the whole bootstrap, last. Nil changes nothing.
	edit func(envoytest.Bootstrap) (envoytest.Bootstrap, error)
}

// plain is a gateway with one of the modules, or bare.
func (b *bench) plain(name string) gateway { return gateway{name: name, wasm: b.wasm[name]} }

// modulesBeside is the list, with the build of -beside if there is one.
func (b *bench) modulesBeside(names ...string) []string {
	if b.settings.beside == "" {
		return names
	}
	b.wasm[beside] = b.settings.beside
	return append(names, beside)
}

// start brings up a gateway and, in a pinned run, puts it on its CPU: after the start, since compiling takes all CPUs.
func (b *bench) start(ctx context.Context, g gateway) (*arm, error) {
	port, err := envoytest.FreePort()
	if err != nil {
		return nil, err
	}
	text, err := b.bootstrap(g, port)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.name, err)
	}
	a, err := b.startText(ctx, g.name, text, max(1, g.workers), net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil || !b.Pin || g.free || g.workers > 1 {
		return a, err
	}
	return a, a.pin(gatewayCPU)
}

// startText brings up an Envoy by a whole bootstrap, whose listener is at addr and whose admin port is 0. It holds it to no
// CPU: see arm.pin.
func (b *bench) startText(ctx context.Context, name string, text envoytest.Bootstrap, workers int, addr string) (*arm, error) {
	config := b.file(name + ".yaml")
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	b.progress.say("starting %s", name)
	envoy, err := envoytest.Start(ctx, envoytest.Options{
		Binary: b.binary, Bootstrap: config, Concurrency: workers,
		ReadyTimeout: 20 * time.Minute, // steps compiles five modules
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	a := &arm{name: name, addr: addr, envoy: envoy, after: []func(){envoy.Stop}}
	b.arms = append(b.arms, a)
	return a, nil
}

// bootstrap is a gateway's configuration.
func (b *bench) bootstrap(g gateway, port int) (envoytest.Bootstrap, error) {
	replicas, sessions := g.replicas, g.sessions
	if replicas == nil {
		replicas = b.load.replicas[:3]
	}
	if sessions == 0 {
		sessions = b.Sessions
	}
	text, err := b.text.Before(replicas, port)
	if err != nil {
		return "", err
	}
	if g.wasm == "" {
		text, err = text.WithoutFilter("pinwheel")
	} else if text, err = text.Wasm(g.wasm); err == nil {
		text, err = text.Plugin(func(c map[string]any) {
			c["debug_headers"] = false
			c["session"] = map[string]any{"max_sessions": tableFor(sessions)}
			maps.Copy(c, g.plugin)
		})
	}
	if err == nil && g.edit != nil {
		text, err = g.edit(text)
	}
	return text, err
}

// tableFor is the smallest power of two that holds the sessions with some room.
func tableFor(sessions int) int { return 1 << bits.Len(uint(sessions+sessions/16)) }

// pids are the processes whose CPU counts.
func (a *arm) pids() []int {
	if a.envoy == nil {
		return a.also
	}
	return append([]int{a.envoy.Pid()}, a.also...)
}

func (a *arm) pin(cpu int) error {
	for _, pid := range a.pids() {
		if err := envoytest.Pin(pid, cpu); err != nil {
			return fmt.Errorf("%w; try -pin=false", err)
		}
	}
	return nil
}

// cpu is what the arm has run so far.
func (a *arm) cpu() (sum time.Duration, _ error) {
	for _, pid := range a.pids() {
		d, err := envoytest.CPUTime(pid)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", a.name, err)
		}
		sum += d
	}
	return sum, nil
}

// logs is the end of what the arm's Envoy has printed.
func (a *arm) logs() string {
	if a.envoy == nil {
		return ""
	}
	return a.envoy.Log.Tail(20)
}

func (a *arm) stop() {
	for i := len(a.after) - 1; i >= 0; i-- {
		a.after[i]()
	}
	a.after = nil
}
