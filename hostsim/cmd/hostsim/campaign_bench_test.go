package main

import (
	"context"
	"syscall"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// The published campaign (610 sessions, 19,582 turns, 28 engines, at most 112 sessions at once), decided by the policy in
// this process, by the shipped module, and by a hash that takes no time; cpu-ms is what the process takes of CPUs, which other
// processes lengthen less than the time.
func BenchmarkCampaign(b *testing.B) {
	engine, err := replica.Preset("gb200", "nemotron-3-super", 2)
	if err != nil {
		b.Fatal(err)
	}
	hash, err := replay.Baseline(replay.SessionHash)
	if err != nil {
		b.Fatal(err)
	}
	wasm := builtWasm(b)
	const policy = "sticky_least_loaded"
	for _, c := range []struct {
		decided string
		router  func(context.Context, int, uint64, []replay.Member) (replay.Router, error)
	}{
		{"hash", hash},
		{"policy", func(_ context.Context, _ int, seed uint64, fleet []replay.Member) (replay.Router, error) {
			return newPolicyRouter(nil, policy, seed, fleet)
		}},
		{"wasm", func(ctx context.Context, _ int, seed uint64, fleet []replay.Member) (replay.Router, error) {
			return replay.NewWasmRouter(ctx, replay.WasmConfig{Wasm: wasm, Policy: policy, Seed: seed, CacheDir: cacheDir()}, fleet)
		}},
	} {
		b.Run("decided="+c.decided, func(b *testing.B) {
			campaign := replay.Campaign{Replicas: 28, Engine: engine, Concurrency: 112, NewRouter: c.router,
				Sessions: func() (trace.Reader, error) { return trace.Generate(trace.GenerateOptions{}) }}
			rounds, before := 0.0, used(b)
			for b.Loop() {
				rounds++
				r, err := replay.Run(context.Background(), campaign)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.Turns), "turns")
				b.ReportMetric(r.Wall, "simulated_s")
			}
			b.ReportMetric((used(b)-before)/rounds, "cpu-ms/op")
		})
	}
}

// used is the CPU time that this process has used, in ms.
func used(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}
