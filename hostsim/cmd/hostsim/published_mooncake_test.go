package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// longestPrefix sends a turn where the longest prefix of it was sent before, whatever the load there.
type longestPrefix []map[uint64]bool

func (l longestPrefix) Turn(_ time.Duration, t *replay.Turn) (replay.Decision, error) {
	best, most := 0, -1
	for i, holds := range l {
		n := 0
		for n < len(t.Blocks) && holds[t.Blocks[n]] {
			n++
		}
		if n > most {
			best, most = i, n
		}
	}
	for _, b := range t.Blocks {
		l[best][b] = true
	}
	return replay.Decision{Replica: best, Reason: "longest_prefix"}, nil
}

func (longestPrefix) Done(time.Duration, replay.Decision, int) error { return nil }
func (longestPrefix) Finish(time.Duration, string) error             { return nil }
func (longestPrefix) Members(time.Duration, []replay.Member) error   { return nil }
func (longestPrefix) Close() error                                   { return nil }

// oneToken shortens answers: caches hold prompts here, and what is generated is nobody's prefix.
type oneToken struct{ trace.Reader }

func (o oneToken) Next() (trace.Session, error) {
	s, err := o.Reader.Next()
	for i := range s.Turns {
		s.Turns[i].Output = 1
	}
	return s, err
}

// instant is a server that never queues: only caches are compared.
type instant struct{}

func (instant) StepTime(replica.Batch) time.Duration { return time.Microsecond }

// Figure 10 of "Mooncake: Trading More Storage for Less Computation" (FAST'25) has ten nodes with a cache of 3 M tokens
// each. One cache of all ten finds 37.5% of the conversation trace there; in the published trace no cache finds more than
// 37.34% (docs/traces.md). All 12,031 requests begin with the same block: the
// longest prefix alone sends every one of them to one node.
func TestPublishedMooncakeNodes(t *testing.T) {
	const nodes, nodeTokens, blockTokens = 10, 3_000_000, 512
	run := func(replicas, tokens int, router func(seed uint64, fleet []replay.Member) (replay.Router, error)) (hit, busiest float64) {
		c := replay.Campaign{Replicas: replicas, OpenLoop: true, Seed: 1,
			Engine: replica.EngineConfig{BlockTokens: blockTokens, Blocks: tokens / blockTokens, MaxBatchedTokens: 1 << 20, MaxSequences: 4096, Step: instant{}}}
		c.Sessions = func() (trace.Reader, error) {
			file, err := os.Open("../../trace/testdata/mooncake_conversation.compact.jsonl")
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { file.Close() })
			r, _, err := trace.Open(file, trace.Options{})
			return oneToken{r}, err
		}
		c.NewRouter = func(_ context.Context, _ int, seed uint64, fleet []replay.Member) (replay.Router, error) {
			return router(seed, fleet)
		}
		r, err := replay.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return r.HitRate, r.RequestsMaxMean / float64(replicas)
	}
	ours := func(policy string) func(uint64, []replay.Member) (replay.Router, error) {
		return func(seed uint64, fleet []replay.Member) (replay.Router, error) {
			return newPolicyRouter(nil, policy, seed, fleet)
		}
	}
	pooled, _ := run(1, nodes*nodeTokens, ours("round_robin"))
	within(t, "hit rate of one cache (published: .375)", pooled, .355, .375)
	pageShows(t, "| 37.5%% | %.1f%% |", 100*pooled)
	prefixHit, busiest := run(nodes, nodeTokens, func(_ uint64, fleet []replay.Member) (replay.Router, error) {
		l := make(longestPrefix, len(fleet))
		for i := range l {
			l[i] = map[uint64]bool{}
		}
		return l, nil
	})
	within(t, "the busiest node's share of requests, longest prefix (published: all)", busiest, .99, 1)
	within(t, "hit rate, longest prefix", prefixHit, 0, .2)
	hit, ourBusiest := run(nodes, nodeTokens, ours("cache_aware"))
	within(t, "the busiest node's share of requests, cache_aware", ourBusiest, .1, .15)
	within(t, "hit rate, cache_aware", hit, .34, pooled)
	local, _ := run(nodes, nodeTokens, ours("consistent_hash"))
	if hit <= local {
		t.Errorf("cache_aware finds %.3f, consistent_hash %.3f", hit, local)
	}
	pageShows(t, "| all | %.0f%%; `cache_aware` %.1f%% |", 100*busiest, 100*ourBusiest)
	pageShows(t, "| %.1f%%; `cache_aware` %.1f%%, `consistent_hash` %.1f%% |", 100*prefixHit, 100*hit, 100*local)
}
