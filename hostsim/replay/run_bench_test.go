package replay

import (
	"context"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// The published campaign as the generator makes it: 610 sessions, 19,582 turns, 28 engines, at most 112 sessions at once.
func BenchmarkCampaign(b *testing.B) { benchmarkFleet(b, 28, 112, trace.GenerateOptions{}) }

// A large fleet: 100,000 sessions of 32 turns in the mean over 1,024 engines, at most 4,096 at once.
func BenchmarkLarge(b *testing.B) {
	benchmarkFleet(b, 1024, 4096, trace.GenerateOptions{Sessions: 100_000, BlockTokens: 64})
}

func benchmarkFleet(b *testing.B, replicas, concurrency int, sessions trace.GenerateOptions) {
	engine, err := replica.Preset("gb200", "nemotron-3-super", 2)
	if err != nil {
		b.Fatal(err)
	}
	newRouter, err := Baseline(SessionHash)
	if err != nil {
		b.Fatal(err)
	}
	c := Campaign{Replicas: replicas, Engine: engine, Concurrency: concurrency, NewRouter: newRouter,
		Sessions: func() (trace.Reader, error) { return trace.Generate(sessions) }}
	b.ReportAllocs()
	for b.Loop() {
		r, err := Run(context.Background(), c)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Turns), "turns")
		b.ReportMetric(r.Wall, "simulated_s")
		b.ReportMetric(r.HitRate, "hit_rate")
	}
}
