package main

import (
	"context"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// The published campaign (610 sessions, 19,582 turns, 28 engines, at most 112 sessions at once), decided by the policy in
// this process, by the shipped module, and by a hash that takes no time.
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
			for b.Loop() {
				r, err := replay.Run(context.Background(), campaign)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.Turns), "turns")
				b.ReportMetric(r.Wall, "simulated_s")
			}
		})
	}
}
