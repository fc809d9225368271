package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replay/report"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// replayRun is all that runs of one command line have in common.
type replayRun struct {
	flags  *replayFlags
	source *replaySource
	engine replica.EngineConfig
	events []replay.Event
	config []byte
	agreed agreement
	wasm   []byte
	stderr io.Writer
}

// Ways to a decision, as replay.PolicyResult.Through has them.
const (
	throughWasm     = "wasm"
	throughPolicy   = "in process"
	throughBaseline = "baseline"
)

func newReplayRun(ctx context.Context, f *replayFlags, stderr io.Writer) (r *replayRun, err error) {
	r = &replayRun{flags: f, source: f.source(ctx), stderr: stderr}
	if r.engine, err = f.engine(); err != nil {
		return nil, err
	}
	if r.events, err = f.schedule(); err != nil {
		return nil, err
	}
	if r.config, err = readConfig(f.config); err != nil {
		return nil, fmt.Errorf("--config: %w (a file, or JSON that begins with {)", err)
	}
	r.agreed = readAgreement(r.config)
	played := f.policies
	if f.advise {
		played = played[:1]
	}
	if slices.ContainsFunc(played, func(name string) bool { return r.through(name) == throughWasm }) {
		if r.wasm, err = readWasm(f.wasm); err != nil {
			return nil, err
		}
	}
	if r.agreed.byEtcd() && slices.ContainsFunc(played, func(name string) bool { return r.through(name) == throughPolicy }) {
		return nil, usagef("--in-process has no etcd: leave it out, or the agreement of --config")
	}
	return r, r.source.measure(r.engine)
}

// through tells how a policy of that name decides.
func (r *replayRun) through(name string) string {
	switch {
	case slices.Contains(replay.Baselines(), name):
		return throughBaseline
	case r.flags.inProcess:
		return throughPolicy
	}
	return throughWasm
}

// routers returns what makes a policy's routers.
func (r *replayRun) routers(name, through string) (func(ctx context.Context, i int, seed uint64, fleet []replay.Member) (replay.Router, error), error) {
	switch through {
	case throughBaseline:
		return replay.Baseline(name)
	case throughPolicy:
		return func(_ context.Context, i int, seed uint64, fleet []replay.Member) (replay.Router, error) {
			return newPolicyRouter(r.config, name, gatewaySeed(seed, i), fleet)
		}, nil
	}
	var etcd *replay.Etcd
	return func(ctx context.Context, i int, seed uint64, fleet []replay.Member) (_ replay.Router, err error) {
		if i == 0 && r.agreed.byEtcd() { // one for all gateways of a run
			if etcd, err = r.agreed.newEtcd(r.flags.etcdLatency, r.events); err != nil {
				return nil, err
			}
		}
		w, err := replay.NewWasmRouter(ctx, replay.WasmConfig{Wasm: r.wasm, Config: r.config, Policy: name, Workers: r.flags.workers,
			Seed: gatewaySeed(seed, i), CacheDir: cacheDir(), Etcd: etcd}, fleet)
		if err != nil {
			return nil, err // not a nil pointer in an interface
		}
		return w, nil
	}, nil
}

// gatewaySeed is another one for each gateway.
func gatewaySeed(seed uint64, i int) uint64 { return seed<<8 + uint64(i) }

// campaign is one run.
func (r *replayRun) campaign(name, through string, seed uint64) (c replay.Campaign, err error) {
	f := r.flags
	c = replay.Campaign{
		Sessions: func() (trace.Reader, error) { return r.source.read(seed) },
		Replicas: f.replicas, Engine: r.engine, Concurrency: f.concurrency, Gateways: f.gateways, Deal: replay.Deal(f.deal), Seed: seed,
		Think: replay.Think(f.think), ThinkCap: f.thinkCap, TimeScale: f.timeScale, OpenLoop: f.openLoop, Overhead: f.overhead,
		Clients: f.clients, KeepSessions: f.keepSessions, Schedule: r.events,
	}
	// Zero of a flag is none; zero of the campaign is the default.
	if c.Overhead == 0 {
		c.Overhead = -1
	}
	if c.ThinkCap == 0 && c.Think == replay.ThinkRecorded {
		c.Think = replay.ThinkNone
	}
	c.NewRouter, err = r.routers(name, through)
	return c, err
}

// play runs campaigns, as many at once as there are processors, and returns their results in their order. The first error
// ends all; it says which policy, by the campaign's number, and seed it is about.
func play(ctx context.Context, campaigns []replay.Campaign, policy func(i int) string) ([]*replay.SeedResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]*replay.SeedResult, len(campaigns))
	var mu sync.Mutex
	var first error
	next := make(chan int)
	var done sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(campaigns)) {
		done.Go(func() {
			for i := range next {
				result, err := replay.Run(ctx, campaigns[i])
				mu.Lock()
				if results[i] = result; err != nil && first == nil {
					first = fmt.Errorf("%s, seed %d: %w", policy(i), campaigns[i].Seed, err)
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	for i := range campaigns {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	done.Wait()
	if first == nil {
		first = ctx.Err() // before all were begun
	}
	return results, first
}

// compare plays each policy with each seed, and reports.
func (r *replayRun) compare(ctx context.Context, stdout io.Writer) error {
	f := r.flags
	result := &replay.Result{Setup: r.setup(), Ideal: r.source.ideal}
	if f.gateways > 1 {
		result.Gateways = f.gateways
	}
	bar := newProgress(r.stderr, "replay", r.source.turns*len(f.policies)*f.seeds)
	var campaigns []replay.Campaign
	for _, name := range f.policies {
		through := r.through(name)
		result.Policies = append(result.Policies, replay.PolicyResult{Policy: name, Through: through})
		for seed := range f.seeds {
			c, err := r.campaign(name, through, uint64(seed+1))
			if err != nil {
				return err
			}
			c.Progress = func(int) { bar.step() }
			campaigns = append(campaigns, c)
		}
	}
	results, err := play(ctx, campaigns, func(i int) string { return f.policies[i/f.seeds] })
	bar.end()
	if err != nil {
		return err
	}
	for i, one := range results {
		p := &result.Policies[i/f.seeds]
		p.Seeds = append(p.Seeds, *one)
	}
	return r.report(result, stdout)
}

func (r *replayRun) report(result *replay.Result, stdout io.Writer) error {
	f := r.flags
	if f.html != "" {
		var page bytes.Buffer
		if err := report.HTML(&page, result); err != nil {
			return err
		}
		if err := writeWhole(f.html, writeAll(page.Bytes())); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if err := f.writeJSON(result, stdout); err != nil {
		return err
	}
	if f.json == "-" {
		return nil
	}
	return report.Table(stdout, result)
}

// writeJSON does what --json says, on one line: with one number a line, a result would be twice as large.
func (f *replayFlags) writeJSON(v any, stdout io.Writer) error {
	if f.json == "" {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if f.json == "-" {
		_, err = stdout.Write(text)
	} else if err = writeWhole(f.json, writeAll(text)); err != nil {
		err = fmt.Errorf("--json: %w", err)
	}
	return err
}
