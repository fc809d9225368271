package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// fake is a result as a campaign makes it, of numbers drawn from a generator: the same every time.
func fake(policies []string, seeds, replicas int) *replay.Result {
	r := &replay.Result{Ideal: 0.951, Setup: []replay.Fact{
		{Name: "trace", Value: "campaign.jsonl: 610 sessions, 19,582 turns, 1.57 G prompt and 4.8 M generated tokens"},
		{Name: "fleet", Value: fmt.Sprintf("%d replicas, 112 sessions at once, 1 gateway", replicas)},
		{Name: "engine", Value: "GB200, Nemotron-3-Super, blocks of 4,160 tokens, 8,480 tokens a step"},
	}}
	for i, policy := range policies {
		p := replay.PolicyResult{Policy: policy, Through: "wasm"}
		for seed := range seeds {
			p.Seeds = append(p.Seeds, fakeSeed(rand.New(rand.NewPCG(uint64(seed+1), uint64(i+1))), uint64(seed+1), float64(i), replicas))
		}
		r.Policies = append(r.Policies, p)
	}
	return r
}

func fakeSeed(rnd *rand.Rand, seed uint64, worse float64, replicas int) replay.SeedResult {
	wall := (5200 + 350*worse) * (1 + 0.05*rnd.NormFloat64())
	s := replay.SeedResult{Seed: seed, Wall: wall, T95: wall * 0.82, HitRate: 0.934 - 0.006*worse + 0.002*rnd.NormFloat64(),
		QueriesPerPrompt: 1.1 + 0.4*worse, TPOTP50: 0.011 + 0.001*worse, TPOTP99: 0.04, SessionMean: wall / 6, Sessions: 610, Turns: 19582,
		Preemptions: int64(40 * worse), Moves: int(13 * worse), Reasons: map[string]int{"pinned": 18972, "placed": 610},
		KVUseMean: 0.31, KVUseMax: 0.78, DecisionsPerSecond: 41000 + 900*rnd.NormFloat64()}
	s.ReportedHitRate = s.HitRate / s.QueriesPerPrompt
	noise := 1 + 0.04*rnd.NormFloat64()
	s.TPOTP50 *= noise
	s.Latency = replay.Percentiles{TTFT: fakePercentiles((0.35+0.1*worse)*noise, 1.1), TPOT: fakePercentiles(s.TPOTP50, 0.3),
		E2E: fakePercentiles((6+worse)*noise, 0.9), Queue: fakePercentiles((0.02+0.03*worse)*noise, 1.6)}
	s.Latency.Queue[0] = 0
	s.TTFTP50, s.TTFTP99 = s.Latency.TTFT[50], s.Latency.TTFT[99]
	s.E2EP50, s.E2EP99, s.QueueP50, s.QueueP99 = s.Latency.E2E[50], s.Latency.E2E[99], s.Latency.Queue[50], s.Latency.Queue[99]
	fakeReplicas(rnd, &s, worse, replicas)
	fakeSamples(rnd, &s, worse)
	fakeSessions(rnd, &s, worse)
	return s
}

func fakeReplicas(rnd *rand.Rand, s *replay.SeedResult, worse float64, replicas int) {
	var most, least, sum, busiest, laziest, busy = 0.0, math.MaxFloat64, 0.0, 0.0, math.MaxFloat64, 0.0
	for i := range replicas {
		share := math.Exp(0.08 * (1 + worse) * rnd.NormFloat64())
		n := int64(19582 * share / float64(replicas))
		rep := replay.ReplicaResult{Address: fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1), Sessions: int(610 * share / float64(replicas)), Requests: n,
			PromptTokens: n * 80000, CachedTokens: int64(float64(n*80000) * s.HitRate), Busy: s.Wall * min(1, 0.6*share)}
		s.Replicas = append(s.Replicas, rep)
		most, least, sum = max(most, float64(n)), min(least, float64(n)), sum+float64(n)
		busiest, laziest, busy = max(busiest, rep.Busy), min(laziest, rep.Busy), busy+rep.Busy
	}
	mean := float64(replicas)
	s.RequestsMaxMin, s.RequestsMaxMean, s.BusyMaxMin, s.BusyMaxMean = most/least, most/sum*mean, busiest/laziest, busiest/busy*mean
}

func fakeSamples(rnd *rand.Rand, s *replay.SeedResult, worse float64) {
	base := make([]float64, len(s.Replicas))
	for i := range base {
		base[i] = 4 * math.Exp(0.2*(1+worse)*rnd.NormFloat64())
	}
	for k := range 256 {
		at := s.Wall * float64(k) / 255
		left := min(1, (1-float64(k)/255)*3)
		smp := replay.Sample{At: at, Open: int(112 * left), HitRate: min(0.97, s.HitRate*(1-math.Exp(-float64(k+2)/6))+0.01*rnd.NormFloat64())}
		smp.PromptTokens = 6_000_000
		if k == 0 || k == 255 {
			smp.HitRate, smp.PromptTokens = -1, 0
		}
		smp.CachedTokens = int64(max(0, smp.HitRate) * float64(smp.PromptTokens))
		for i := range base {
			n := int(base[i] * left * (1 + 0.4*math.Sin(float64(k)/9+float64(i))) * (1 + 0.2*rnd.NormFloat64()))
			smp.Requests = append(smp.Requests, max(0, n))
			smp.KVUse = append(smp.KVUse, min(1, float64(max(0, n))/16))
		}
		s.Samples = append(s.Samples, smp)
	}
}

func fakeSessions(rnd *rand.Rand, s *replay.SeedResult, worse float64) {
	for i := range 24 {
		span := replay.SessionSpan{Session: fmt.Sprintf("cc-%06x", rnd.IntN(1<<24))}
		end := s.Wall * (1 - 0.008*float64(i))
		at := end * (0.25 + 0.4*rnd.Float64())
		replica := rnd.IntN(len(s.Replicas))
		for at < end {
			if rnd.Float64() < 0.015*worse {
				replica = rnd.IntN(len(s.Replicas))
			}
			t := replay.TurnSpan{Replica: replica, Sent: at, Prompt: 60000, Cached: 55000}
			t.Admitted = t.Sent + 6*rnd.ExpFloat64()*(1+worse)
			t.First = t.Admitted + 4 + 8*rnd.ExpFloat64()
			t.End = t.First + 5 + 60*rnd.ExpFloat64()
			span.Turns = append(span.Turns, t)
			at = t.End + 2*rnd.ExpFloat64()
		}
		last := &span.Turns[len(span.Turns)-1]
		last.Sent, last.Admitted, last.First, last.End = min(last.Sent, end), min(last.Admitted, end), min(last.First, end), end
		s.Slowest = append(s.Slowest, span)
	}
}

func fakePercentiles(median, sigma float64) []float64 {
	out := make([]float64, 101)
	for i := range out {
		p := (float64(i) + 0.5) / 101
		out[i] = median * math.Exp(sigma*math.Sqrt2*math.Erfinv(2*p-1))
	}
	slices.Sort(out)
	return out
}
