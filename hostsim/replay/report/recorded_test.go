package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// recorded is testdata/recorded.json: the bundled trace over three servers under baselines, as it was when that was written.
// It is data for the report and says nothing of what the replay measures today.
func recorded() *replay.Result {
	text, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		panic(err)
	}
	var r replay.Result
	if err := json.Unmarshal(text, &r); err != nil {
		panic(err)
	}
	return &r
}

// With -update: the recording.
func TestRecord(t *testing.T) {
	if !*update {
		if r := recorded(); len(r.Policies) != 3 || len(r.Policies[0].Seeds) != 3 || r.Policies[0].Seeds[0].Turns < 700 {
			t.Errorf("%d policies", len(r.Policies))
		}
		return
	}
	engine, err := replica.Preset("h100", "qwen3-32b", 2)
	if err != nil {
		t.Fatal(err)
	}
	ideal, err := replay.Ideal(trace.Bundled(), engine.BlockTokens)
	if err != nil {
		t.Fatal(err)
	}
	r := &replay.Result{Ideal: ideal, Setup: []replay.Fact{
		{Name: "trace", Value: "weka_cc_24: 24 sessions, 736 turns"},
		{Name: "fleet", Value: "3 replicas, all sessions at once, 1 gateway"},
		{Name: "engine", Value: fmt.Sprintf("2 x H100, Qwen3-32B, blocks of %d tokens", engine.BlockTokens)},
	}}
	for _, name := range []string{replay.SessionHash, replay.RoundRobin, replay.LeastRequests} {
		newRouter, err := replay.Baseline(name)
		if err != nil {
			t.Fatal(err)
		}
		p := replay.PolicyResult{Policy: name, Through: "baseline"}
		for seed := range uint64(3) {
			s, err := replay.Run(t.Context(), replay.Campaign{Replicas: 3, Engine: engine, Seed: seed + 1, NewRouter: newRouter,
				Sessions: func() (trace.Reader, error) { return trace.Bundled(), nil }})
			if err != nil {
				t.Fatal(err)
			}
			p.Seeds = append(p.Seeds, *s)
		}
		r.Policies = append(r.Policies, p)
	}
	shorten(r)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/recorded.json", append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shorten drops what would make the recording large, and what depends on the machine.
func shorten(r *replay.Result) {
	for i, p := range shownPolicies(r) {
		for k := range r.Policies[i].Seeds {
			s := &r.Policies[i].Seeds[k]
			s.DecisionsPerSecond = 100_000
			if s != p.Run {
				s.Samples, s.Slowest, s.Latency = nil, nil, replay.Percentiles{}
			}
			var samples []replay.Sample
			for i := 0; i < len(s.Samples); i += 2 {
				samples = append(samples, s.Samples[i])
				round(s.Samples[i].KVUse)
			}
			s.Samples, s.Slowest = samples, s.Slowest[:min(12, len(s.Slowest))]
			round(s.Latency.TTFT)
			round(s.Latency.TPOT)
			round(s.Latency.E2E)
			round(s.Latency.Queue)
			for i := range s.Slowest {
				for k := range s.Slowest[i].Turns {
					t := &s.Slowest[i].Turns[k]
					times := []float64{t.Sent, t.Admitted, t.First, t.End}
					round(times)
					t.Sent, t.Admitted, t.First, t.End = times[0], times[1], times[2], times[3]
				}
			}
		}
	}
}

// round rounds to a ten-thousandth.
func round(values []float64) {
	for i, v := range values {
		values[i] = math.Round(v*1e4) / 1e4
	}
}
