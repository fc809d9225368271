package replay

import (
	"context"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// The published campaign as the generator makes it: 610 sessions, 19,582 turns, 28 engines, at most 112 sessions at once.
func BenchmarkCampaign(b *testing.B) {
	engine, err := replica.Preset("gb200", "nemotron-3-super", 2)
	if err != nil {
		b.Fatal(err)
	}
	newRouter, err := Baseline(SessionHash)
	if err != nil {
		b.Fatal(err)
	}
	c := Campaign{Replicas: 28, Engine: engine, Concurrency: 112, NewRouter: newRouter,
		Sessions: func() (trace.Reader, error) { return trace.Generate(trace.GenerateOptions{}) }}
	b.ReportAllocs()
	for b.Loop() {
		r, err := Run(context.Background(), c)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(r.Wall, "simulated_s")
		b.ReportMetric(r.HitRate, "hit_rate")
	}
}
