package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// PrimeIntellect-ai/prime-rl#3255: with a KV pool cut to a third, consistent hashing's hit rate falls from .93 to .16 and
// the wall time is 2.4 times as long. Model, load and pool are not published: four engines as there, the campaign's
// sessions, and a pool that is just enough.
func TestPublishedPoolCutToAThird(t *testing.T) {
	args := publishedEngine + "--sessions 200 --replicas 4 --seeds 1 --policy session_hash --pool-tokens "
	whole, third := runsOf(t, replayed(t, args+"4200000"), "session_hash"), runsOf(t, replayed(t, args+"1400000"), "session_hash")
	within(t, "hit rate of the whole pool (published: .93)", middleOf(whole, hitRate), .91, .95)
	within(t, "hit rate of a third (published: .16)", middleOf(third, hitRate), .05, .4)
	within(t, "wall time (published: 2.4)", ratio(third, whole, wall), 1.8, 7)
}

// NovaSky-AI/SkyRL#1791: mean latency of a group of trajectories, sticky_least_loaded by consistent_hash: .93 at low
// pressure, .58 at moderate, .94 at high. The pressures are not published: here they are sessions at once, of which few
// fit well, a medium number fits only if spread evenly, and many do not fit at all. A session's time stands for a group's.
func TestPublishedModeratePressure(t *testing.T) {
	at := map[int]float64{}
	for _, sessions := range []int{32, 96, 192} {
		r := replayed(t, publishedEngine+fmt.Sprintf("--sessions 300 --replicas 4 --pool-tokens 2500000 --seeds 2 --concurrency %d", sessions)+
			" --policy session_hash,sticky_least_loaded")
		at[sessions] = ratio(runsOf(t, r, "sticky_least_loaded"), runsOf(t, r, "session_hash"), sessionMean)
	}
	within(t, "low pressure (published: .93)", at[32], .88, 1)
	within(t, "moderate pressure (published: .58)", at[96], .35, .75)
	within(t, "high pressure (published: .94)", at[192], .85, 1.1)
}

// firstOfTied pins a session to the replica with the fewest requests, of several the first.
type firstOfTied struct {
	pins     map[string]int
	requests []int
}

func (f *firstOfTied) Turn(_ time.Duration, t *replay.Turn) (replay.Decision, error) {
	at, ok := f.pins[t.Session]
	if !ok {
		for i, n := range f.requests {
			if n < f.requests[at] {
				at = i
			}
		}
		f.pins[t.Session] = at
	}
	f.requests[at]++
	return replay.Decision{Replica: at, Reason: "first_of_tied"}, nil
}

func (f *firstOfTied) Done(_ time.Duration, d replay.Decision, _ int) error {
	f.requests[d.Replica]--
	return nil
}

func (*firstOfTied) Finish(time.Duration, string) error           { return nil }
func (*firstOfTied) Members(time.Duration, []replay.Member) error { return nil }
func (*firstOfTied) Close() error                                 { return nil }

// pytorch/torchtitan#4109: sessions that begin while all replicas are idle are tied, and what decides ties decides where
// they stay: 10.6 times as many requests on the busiest generator as on the least busy where the first is taken, 1.24
// where the one chosen least recently is.
func TestPublishedTiesRotate(t *testing.T) {
	engine, err := replica.Preset("GB200", "nemotron-3-super", 2)
	if err != nil {
		t.Fatal(err)
	}
	c := replay.Campaign{Replicas: 4, Engine: engine, Concurrency: 6, Think: replay.ThinkRL, Seed: 1}
	c.Sessions = func() (trace.Reader, error) { return trace.Generate(trace.GenerateOptions{Sessions: 120}) }
	spreadOf := func(router func(seed uint64, fleet []replay.Member) (replay.Router, error)) float64 {
		c.NewRouter = func(_ context.Context, _ int, seed uint64, fleet []replay.Member) (replay.Router, error) {
			return router(seed, fleet)
		}
		r, err := replay.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return r.RequestsMaxMin
	}
	first := spreadOf(func(_ uint64, fleet []replay.Member) (replay.Router, error) {
		return &firstOfTied{pins: map[string]int{}, requests: make([]int, len(fleet))}, nil
	})
	rotating := spreadOf(func(seed uint64, fleet []replay.Member) (replay.Router, error) {
		return newPolicyRouter(nil, "sticky_least_loaded", seed, fleet)
	})
	within(t, "requests max/min, the first of the tied (published: 10.6)", first, 4, 40)
	within(t, "requests max/min, sticky_least_loaded (published, least recently chosen: 1.24)", rotating, 1, 1.6)
	pageShows(t, "| 10.6 | %.1f |", first)
	pageShows(t, "| 1.24 | %.2f |", rotating)
}
