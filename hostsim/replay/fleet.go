package replay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// ErrCampaign is wrapped by what is wrong with a Campaign or with the sessions that it plays.
var ErrCampaign = errors.New("replay: campaign")

// What zero means in a Campaign.
const (
	DefaultOverhead = 100 * time.Millisecond
	DefaultJitter   = 10 * time.Millisecond
	DefaultThinkCap = time.Minute
	DefaultAttempts = 10
)

// Campaign is one policy, one seed: sessions, a fleet, and how they meet. Zero values say what they mean.
type Campaign struct {
	// Sessions opens the trace; it is read as sessions are started, so a cap bounds memory. Required.
	Sessions func() (trace.Reader, error)
	// Replicas is the number of engines at the start, 1 or more, each an Engine.
	Replicas int
	Engine   replica.EngineConfig
	// Concurrency is how many sessions are open at once, with immediate refill. Zero means all. A session and its
	// sub-agents take one place, from the first turn of the one to the last turn of all.
	Concurrency int
	// Gateways is the number of gateways, each a Router; a session's turns are dealt out to them by Deal. Zero means 1.
	Gateways int
	Deal     Deal
	// NewRouter makes gateway i's router. Required.
	NewRouter func(ctx context.Context, i int, seed uint64, fleet []Member) (Router, error)
	// Seed decides about everything that is left to chance: the order in which sessions start, think times that are
	// drawn, and the jitter of sending. What it decides about a session does not depend on the router.
	Seed uint64
	// Progress, if not nil, is called after each turn with the turns done so far.
	Progress func(done int)

	// Think says how long a session waits between an answer and its next turn. ThinkCap bounds recorded pauses, before
	// TimeScale multiplies them; zero means 60 s and 1.
	Think     Think
	ThinkCap  time.Duration
	TimeScale float64
	// OpenLoop sends turns when they were recorded (times TimeScale), or as soon as the turn before has ended if that is
	// later: no session overtakes itself. Think, Ramp and Jitter do not count then, and sessions keep the trace's order.
	OpenLoop bool
	// Overhead is what gateway and tokeniser need between sending and the engine. Zero means 0.1 s, less than zero none.
	Overhead time.Duration
	// Jitter delays each sending by a random time below it. Zero means 10 ms, less than zero none.
	Jitter time.Duration
	// Ramp spreads the first turns of the sessions that start at time zero evenly at random over this time.
	Ramp time.Duration
	// InOrder starts sessions as the trace has them. Otherwise they are shuffled by the seed: groups of one another, within
	// a window of ShuffleWindow of them.
	InOrder bool
	// WholeGroups waits with a cap until there is room for all samples of a group. Otherwise they start as room comes.
	WholeGroups bool
	// PlainSubAgents starts sub-agents as sessions of their own. Otherwise they start after the turn of their parent that
	// they followed when they were recorded.
	PlainSubAgents bool
	// Clients is the number of client processes. Each turn is sent by any of them, as where all accept on one socket. Zero
	// means 1.
	Clients int
	// KeepSessions ends sessions without a word to the router, as clients do that never release them.
	KeepSessions bool
	// Balancer is how a gateway chooses a replica when its router names none.
	Balancer Balancer
	// Attempts is how often a client sends a turn for which there is no replica at all, at first a second apart, then twice
	// as long each time, at most a minute. After that the turn counts as an error and the session goes on. Zero means 10.
	Attempts int
	// Schedule is what happens to the fleet.
	Schedule []Event
}

// Deal is how a session's turns are dealt out to gateways.
type Deal string

const (
	// DealRoundRobin gives each turn to the next gateway. Empty means the same.
	DealRoundRobin Deal = "round_robin"
	// DealRandom gives each turn to a random one.
	DealRandom Deal = "random"
	// DealSession keeps a session at one gateway.
	DealSession Deal = "session"
)

// Balancer is a gateway's own way to choose a replica.
type Balancer string

const (
	// BalancerLeastRequests takes the live replica with the fewest requests of this gateway. Empty means the same.
	BalancerLeastRequests Balancer = "least_requests"
	// BalancerRoundRobin takes the next live one.
	BalancerRoundRobin Balancer = "round_robin"
)

// Validate tells what is wrong with the campaign, by ErrCampaign or ErrEvent. It does not look into the trace.
func (c *Campaign) Validate() error {
	bad := func(name string, value any, allowed string) error {
		return fmt.Errorf("%w: %s is %v: %s", ErrCampaign, name, value, allowed)
	}
	switch {
	case c.Sessions == nil:
		return bad("Sessions", "nil", "a trace is required")
	case c.NewRouter == nil:
		return bad("NewRouter", "nil", "a router is required")
	case c.Replicas < 1 || c.Replicas > maxReplicas:
		return bad("Replicas", c.Replicas, fmt.Sprintf("1 to %d", maxReplicas))
	case c.Concurrency < 0:
		return bad("Concurrency", c.Concurrency, "0 (all sessions) or more")
	case c.Gateways < 0:
		return bad("Gateways", c.Gateways, "0 (one) or more")
	case c.Clients < 0:
		return bad("Clients", c.Clients, "0 (one) or more")
	case c.Attempts < 0:
		return bad("Attempts", c.Attempts, "0 (10) or more")
	case c.ThinkCap < 0:
		return bad("ThinkCap", c.ThinkCap, "0 (60s) or more")
	case !(c.TimeScale >= 0 && c.TimeScale <= 1e6):
		return bad("TimeScale", c.TimeScale, "0 (1) to 1e6")
	case c.Ramp < 0:
		return bad("Ramp", c.Ramp, "0 or more")
	case max(c.ThinkCap, c.Overhead, c.Jitter, c.Ramp) > maxClock:
		return bad("the longest of ThinkCap, Overhead, Jitter and Ramp", max(c.ThinkCap, c.Overhead, c.Jitter, c.Ramp), "at most 70 years")
	}
	switch c.Deal {
	case "", DealRoundRobin, DealRandom, DealSession:
	default:
		return bad("Deal", c.Deal, "round_robin, random or session")
	}
	switch c.Balancer {
	case "", BalancerLeastRequests, BalancerRoundRobin:
	default:
		return bad("Balancer", c.Balancer, "least_requests or round_robin")
	}
	if err := c.Think.validate(); err != nil {
		return err
	}
	return ValidateSchedule(c.Schedule, c.Replicas)
}

// maxReplicas bounds the fleet, joined ones included.
const maxReplicas = 1 << 16

func (c Campaign) withDefaults() Campaign {
	orDefault := func(d *time.Duration, zero time.Duration) {
		if *d == 0 {
			*d = zero
		}
		*d = max(*d, 0)
	}
	orDefault(&c.Overhead, DefaultOverhead)
	orDefault(&c.Jitter, DefaultJitter)
	orDefault(&c.ThinkCap, DefaultThinkCap)
	if c.TimeScale == 0 {
		c.TimeScale = 1
	}
	if c.Attempts == 0 {
		c.Attempts = DefaultAttempts
	}
	if c.Deal == "" {
		c.Deal = DealRoundRobin
	}
	c.Gateways, c.Clients = max(c.Gateways, 1), max(c.Clients, 1)
	if c.OpenLoop {
		c.Jitter, c.Ramp, c.InOrder = 0, 0, true
	}
	return c
}
