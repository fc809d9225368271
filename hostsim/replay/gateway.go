package replay

import (
	"fmt"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// HTTP statuses that a router hears of.
const (
	statusBroken      = 0
	statusOK          = 200
	statusTooLong     = 400
	statusUnavailable = 503
)

// routerTries is how often a gateway asks its router about one turn before it chooses by itself: a router that knows
// nothing of health would name a dead replica again and again.
const routerTries = 3

// ReasonGateway is counted where a gateway chose by itself after its router had named replicas that did not answer.
const ReasonGateway = "gateway"

// gateway is one Router and what a gateway does besides: it counts its requests, balances and asks again.
type gateway struct {
	router Router
	// requests are those on their way, by replica.
	requests []int
	next     int // of round robin, and where the search for the fewest begins
	// decisions took spent of the machine's time.
	decisions int
	spent     time.Duration
}

// timed adds the machine's time of a call of the router to spent. The router's own timers run before: they are no decisions.
func (g *gateway) timed(now time.Duration, call func() error) error {
	if r, ok := g.router.(interface{ Advance(time.Duration) }); ok {
		r.Advance(now)
	}
	began := time.Now()
	err := call()
	g.spent += time.Since(began)
	return err
}

// balance returns a live replica, or -1. Replicas that drain come last.
func (g *gateway) balance(how Balancer, servers []*server) int {
	for _, draining := range [...]bool{false, true} {
		best := -1
		for k := range servers {
			i := (g.next + k) % len(servers)
			if !servers[i].takes() || servers[i].member.Draining != draining {
				continue
			}
			if best < 0 || how != BalancerRoundRobin && g.requests[i] < g.requests[best] {
				best = i
			}
			if how == BalancerRoundRobin {
				break
			}
		}
		if best >= 0 {
			g.next = (best + 1) % len(servers)
			return best
		}
	}
	return -1
}

// decide sends s's turn on its way to a replica that answers, or puts it off.
func (r *run) decide(s *openSession) error {
	g := r.gateways[s.gateway]
	for {
		pick := -1
		if s.tries < routerTries {
			if err := r.ask(g, s); err != nil {
				return err
			}
			pick = s.decision.Replica
		} else {
			r.result.Reasons[ReasonGateway]++
		}
		if pick < 0 {
			if pick = g.balance(r.Balancer, r.servers); pick < 0 {
				return r.putOff(s)
			}
		}
		if r.servers[pick].takes() {
			s.replica = pick
			g.requests[pick]++
			r.agenda.add(r.now+r.Overhead, turnComes, s.slot, 0)
			return nil
		}
		if err := r.tell(s, statusUnavailable); err != nil {
			return err
		}
		r.result.Retries++
	}
}

// ask asks the router about s's turn.
func (r *run) ask(g *gateway, s *openSession) error {
	s.tries++
	t := &s.trace.Turns[s.turn]
	r.shown = trace.AppendBlocks(r.shown[:0], t.Blocks)
	r.turn = Turn{Session: s.trace.ID, Client: s.client, First: s.turn == 0, Prompt: t.Input, BlockTokens: s.trace.BlockTokens,
		Blocks: r.shown}
	var d Decision
	err := g.timed(r.now, func() (err error) {
		d, err = g.router.Turn(r.now, &r.turn)
		return err
	})
	g.decisions++
	if err != nil {
		return fmt.Errorf("replay: router of gateway %d: session %q, turn %d: %w", s.gateway, s.trace.ID, s.turn, err)
	}
	if d.Replica < -1 || d.Replica >= len(r.servers) {
		return fmt.Errorf("replay: router of gateway %d names replica %d: -1 to %d", s.gateway, d.Replica, len(r.servers)-1)
	}
	s.decision, s.decided = d, true
	r.result.Reasons[d.Reason]++
	return nil
}

// tell gives the router's decision back, if there is one.
func (r *run) tell(s *openSession, status int) error {
	if !s.decided {
		return nil
	}
	g := r.gateways[s.gateway]
	err := g.timed(r.now, func() error { return g.router.Done(r.now, s.decision, status) })
	s.decided, s.decision = false, Decision{}
	if err != nil {
		return fmt.Errorf("replay: router of gateway %d: end of turn %d of session %q: %w", s.gateway, s.turn, s.trace.ID, err)
	}
	return nil
}

// putOff has the client send again later, or no more.
func (r *run) putOff(s *openSession) error {
	if err := r.tell(s, statusUnavailable); err != nil {
		return err
	}
	s.attempts++
	s.tries = 0
	if s.attempts >= r.Attempts {
		r.result.Errors++
		return r.ended(s)
	}
	r.result.Retries++
	wait := min(time.Second<<min(s.attempts-1, 10), time.Minute)
	r.agenda.add(r.now+wait, turnSent, s.slot, 0)
	return nil
}

// broken has the gateway send a turn again whose replica died.
func (r *run) broken(s *openSession) error {
	r.gateways[s.gateway].requests[s.replica]--
	if err := r.tell(s, statusBroken); err != nil {
		return err
	}
	r.result.Retries++
	s.tries = 0
	return r.decide(s)
}

// members tells all routers about the fleet.
func (r *run) members() error {
	for i, g := range r.gateways {
		for len(g.requests) < len(r.servers) {
			g.requests = append(g.requests, 0)
		}
		if err := g.router.Members(r.now, r.fleet()); err != nil {
			return fmt.Errorf("replay: router of gateway %d: members: %w", i, err)
		}
	}
	return nil
}
