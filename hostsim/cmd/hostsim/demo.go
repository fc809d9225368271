package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// The demo's replicas. Times are those of a mid-sized model on one node, divided by demoSpeed; what the table shows
// depends on the cache and on the order of turns, which the speed leaves as it is.
const (
	cacheBlockTokens = trace.WEKABlockTokens
	// defaultCacheTokens gives four replicas together room for every session of the trace once (2.3 million tokens), but
	// no replica room for all: what a fleet of the right size has.
	defaultCacheTokens = 640_000
	demoPrefill        = 100 * time.Microsecond // a prompt token
	demoDecode         = 10 * time.Millisecond  // a generated token
	demoSpeed          = 500
	demoMaxThink       = time.Minute // longer pauses are cut to this
	// A slow or busy machine takes longer than the seconds that are usual, and shows its progress; what this ends is stuck.
	demoArmTimeout = 5 * time.Minute
)

type demoFlags struct {
	wasm, config, listen string
	replicas, workers    int
	cacheTokens          int
	stay, asJSON         bool
}

func newDemo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Replay a recorded trace through Pinwheel and simulated replicas",
		Long: `demo replays 24 recorded agent sessions (736 turns, all sessions at once, pauses compressed) over HTTP through the
embedded gateway to simulated model servers, twice: round robin without a plugin, then with the plugin. It prints what
each replica served and how much of it came from its prefix cache, and ends by itself in well under a minute.

It exits 1 when the plugin sends a turn of a session to another replica than the turn before: all replicas are there all
the time, so there is no cause for that.`,
		Example: `  hostsim demo --wasm dist/pinwheel.wasm
  hostsim demo --wasm dist/pinwheel.wasm --stay    # and keep the gateway on 127.0.0.1:8080
  hostsim demo --wasm dist/pinwheel.wasm --sim-replicas 6 --sim-cache-tokens 340000 --json`,
		Args: exactArgs(0, "flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.wasm, "wasm", "dist/pinwheel.wasm", "the plugin, a .wasm `FILE`")
	flags.StringVar(&f.config, "config", "", "the plugin's configuration without replicas: a `FILE`, or JSON that begins with {")
	flags.IntVar(&f.replicas, "sim-replicas", 4, "`N` simulated model servers")
	flags.IntVar(&f.cacheTokens, "sim-cache-tokens", defaultCacheTokens, "prefix cache of each, in `TOKENS`; 0 is without bound")
	flags.IntVar(&f.workers, "workers", 2, "`N` worker threads, each with its own virtual machine")
	flags.BoolVar(&f.stay, "stay", false, "keep the gateway with the plugin up afterwards, until Ctrl-C")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`ADDRESS` for --stay")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON instead of the table")
	return cmd
}

func (f *demoFlags) check() error {
	switch {
	case f.replicas < 1 || f.replicas > 64:
		return usagef("--sim-replicas %d is outside 1 to 64", f.replicas)
	case f.cacheTokens < 0:
		return usagef("--sim-cache-tokens %d is negative", f.cacheTokens)
	case f.workers < 1 || f.workers > 256:
		return usagef("--workers %d is outside 1 to 256", f.workers)
	}
	return nil
}

func demo(ctx context.Context, f *demoFlags, stdout, stderr io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	config, err := readConfig(f.config)
	if err != nil {
		return fmt.Errorf("--config: %w (a file, or JSON that begins with {)", err)
	}
	wasm, err := readWasm(f.wasm)
	if err != nil {
		return err
	}
	address := "127.0.0.1:0"
	if f.stay {
		address = f.listen
	}
	ln, err := listen("--listen", address)
	if err != nil {
		return err
	}
	defer ln.Close()
	sessions, err := trace.Bundled().ReadAll()
	if err != nil {
		return err
	}
	d := &demoRun{flags: f, sessions: sessions, wasm: wasm, config: config, stdout: stdout, stderr: stderr}
	return d.run(ctx, ln)
}

// demoRun is one demonstration.
type demoRun struct {
	flags          *demoFlags
	sessions       []trace.Session
	wasm, config   []byte
	stdout, stderr io.Writer
}

func (d *demoRun) run(ctx context.Context, ln net.Listener) error {
	sim, err := d.startReplicas()
	if err != nil {
		return err
	}
	defer func() { _ = sim.stop() }()
	clusters := []gateway.Cluster{{Name: simCluster, Hosts: sim.addresses}}
	if err := checkReplicas(d.config, clusters); err != nil {
		return err
	}
	base, err := d.baseline(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.stderr, "compiling %s\n", d.flags.wasm)
	host, err := startPlugin(ctx, hostsim.Config{Wasm: d.wasm, Workers: d.flags.workers,
		PluginConfig: withReplicas(d.config, sim.addresses, false)}, hostsim.LogWarn, d.stderr)
	if err != nil {
		return err
	}
	defer host.Close()
	g, err := serveLocal(ctx, ln, gateway.Config{Host: host, Clusters: clusters})
	if err != nil {
		return err
	}
	defer func() { _ = g.stop() }()
	pinned := &arm{name: "pinwheel", url: g.url, fleet: sim, release: true}
	if err := pinned.replay(ctx, d.sessions, newProgress(d.stderr, pinned.name, d.turns())); err != nil {
		return err
	}
	result := d.result(base, pinned)
	if err := d.print(result); err != nil {
		return err
	}
	if err := result.verdict(); err != nil {
		return err
	}
	if !d.flags.stay {
		return nil
	}
	fmt.Fprintf(d.stderr, "\nListening on %s until Ctrl-C.\n", g.url)
	select {
	case <-ctx.Done():
		return g.stop()
	case err := <-g.done:
		return err
	}
}

// baseline replays the trace round robin, without a plugin.
func (d *demoRun) baseline(ctx context.Context) (*arm, error) {
	sim, err := d.startReplicas()
	if err != nil {
		return nil, err
	}
	defer func() { _ = sim.stop() }()
	ln, err := listen("--listen", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g, err := serveLocal(ctx, ln, gateway.Config{Clusters: []gateway.Cluster{{Name: simCluster, Hosts: sim.addresses}}})
	if err != nil {
		return nil, err
	}
	a := &arm{name: "round_robin", url: g.url, fleet: sim}
	err = a.replay(ctx, d.sessions, newProgress(d.stderr, a.name, d.turns()))
	return a, errors.Join(err, g.stop())
}

func (d *demoRun) startReplicas() (*fleet, error) {
	return startFleet(d.flags.replicas, replica.Config{CacheBlocks: d.flags.cacheTokens / cacheBlockTokens,
		PrefillPerToken: demoPrefill, DecodePerToken: demoDecode, TimeScale: 1.0 / demoSpeed})
}

func (d *demoRun) turns() int {
	n := 0
	for _, s := range d.sessions {
		n += len(s.Turns)
	}
	return n
}

func (d *demoRun) print(r *demoResult) error {
	if d.flags.asJSON {
		out := json.NewEncoder(d.stdout)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	return r.table(d.stdout, d.flags.stay, d.flags.listen)
}

// localGateway is a gateway that serves in the background.
type localGateway struct {
	url    string
	cancel context.CancelFunc
	done   chan error // Serve's result, then closed
}

func serveLocal(ctx context.Context, ln net.Listener, c gateway.Config) (*localGateway, error) {
	g, err := gateway.New(c)
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &localGateway{url: "http://" + ln.Addr().String(), cancel: cancel, done: make(chan error, 1)}
	go func() {
		l.done <- g.Serve(ctx, ln)
		close(l.done)
	}()
	return l, nil
}

// stop ends the gateway and waits for it. Further calls return nil.
func (l *localGateway) stop() error {
	l.cancel()
	return <-l.done
}
