package replay

import (
	"context"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// Campaign is one policy, one seed: sessions, a fleet, and how they meet. Zero values say what they mean.
type Campaign struct {
	// Sessions opens the trace; it is read as sessions are started, so a cap bounds memory. Required.
	Sessions func() (trace.Reader, error)
	// Replicas is the number of engines at the start, 1 or more, each an Engine.
	Replicas int
	Engine   replica.EngineConfig
	// Concurrency is how many sessions are open at once, with immediate refill. Zero means all.
	Concurrency int
	// Gateways is the number of gateways, each a Router; a session's turns are dealt out to them. Zero means 1.
	Gateways int
	// NewRouter makes gateway i's router. Required.
	NewRouter func(ctx context.Context, i int, seed uint64, fleet []Member) (Router, error)
	// Seed decides about everything that is left to chance.
	Seed uint64
	// Progress, if not nil, is called after each turn with the turns done so far.
	Progress func(done int)
}

// Run plays the campaign. The rest of the options (think times, clients, schedule of events, overhead) stand beside.
func Run(ctx context.Context, c Campaign) (*SeedResult, error) { panic("not yet") }
