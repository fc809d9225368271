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

	// waiter is the router where it is one, waiting has the turns that it has left open, by ticket, and armed is when it will be
	// woken.
	waiter  Waiter
	waiting map[any]*openSession
	armed   time.Duration
}

// call is timed, of gateway i. What the router will do by itself may be another thing afterwards.
func (r *run) call(i int, call func() error) error {
	err := r.gateways[i].timed(r.now, call)
	r.arm(i)
	return err
}

// arm has gateway i's router woken when something falls due in it.
func (r *run) arm(i int) {
	g := r.gateways[i]
	if g.waiter == nil {
		return
	}
	if at, ok := g.waiter.Due(); ok && at < g.armed {
		g.armed = max(at, r.now)
		r.agenda.add(g.armed, wakes, i, 0)
	}
}

// wake lets happen what falls due in gateway i's router, and sends the turns on whose decisions that makes.
func (r *run) wake(i int, at time.Duration) error {
	g := r.gateways[i]
	if at != g.armed {
		return nil // it was woken earlier, and looked again
	}
	g.armed = forever
	g.waiter.Advance(r.now)
	made, err := g.waiter.Made(r.now)
	if err != nil {
		return fmt.Errorf("replay: router of gateway %d: %w", i, err)
	}
	r.arm(i)
	for _, d := range made {
		s := g.waiting[d.Ticket]
		delete(g.waiting, d.Ticket)
		if err := r.take(s, d); err != nil {
			return err
		}
		over, err := r.sendTo(s, d.Replica)
		if !over && err == nil {
			err = r.decide(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
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

// decide sends s's turn on its way to a replica that answers, or puts it off, unless the router takes its time.
func (r *run) decide(s *openSession) error {
	for {
		pick := -1
		if s.tries < routerTries {
			if open, err := r.ask(s); open || err != nil {
				return err
			}
			pick = s.decision.Replica
		} else {
			r.result.Reasons[ReasonGateway]++
		}
		if over, err := r.sendTo(s, pick); over || err != nil {
			return err
		}
	}
}

// sendTo sends s's turn to a replica, -1 for one of the gateway's choice, or puts it off. It reports false where that one does
// not answer.
func (r *run) sendTo(s *openSession, pick int) (over bool, err error) {
	g := r.gateways[s.gateway]
	if pick < 0 {
		if pick = g.balance(r.Balancer, r.servers); pick < 0 {
			return true, r.putOff(s)
		}
	}
	if r.servers[pick].takes() {
		s.replica = pick
		g.requests[pick]++
		r.agenda.add(r.now+r.Overhead, turnComes, s.slot, 0)
		return true, nil
	}
	r.result.Retries++
	return false, r.tell(s, statusUnavailable)
}

// ask asks the router about s's turn, and reports whether it has left it open.
func (r *run) ask(s *openSession) (open bool, err error) {
	g := r.gateways[s.gateway]
	s.tries++
	t := &s.trace.Turns[s.turn]
	r.shown = trace.AppendBlocks(r.shown[:0], t.Blocks)
	r.turn = Turn{Session: s.trace.ID, Client: s.client, First: s.turn == 0, Prompt: t.Input, BlockTokens: s.trace.BlockTokens,
		Blocks: r.shown}
	var d Decision
	err = r.call(s.gateway, func() (err error) {
		d, err = g.router.Turn(r.now, &r.turn)
		return err
	})
	g.decisions++
	if err != nil {
		return false, fmt.Errorf("replay: router of gateway %d: session %q, turn %d: %w", s.gateway, s.trace.ID, s.turn, err)
	}
	if d.Open && g.waiter != nil {
		g.waiting[d.Ticket] = s
		return true, nil
	}
	return false, r.take(s, d)
}

// take keeps what the router has decided about s's turn.
func (r *run) take(s *openSession, d Decision) error {
	if d.Open {
		return fmt.Errorf("replay: router of gateway %d leaves a turn open and is no Waiter", s.gateway)
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
	err := r.call(s.gateway, func() error { return g.router.Done(r.now, s.decision, status) })
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
		r.arm(i)
	}
	return nil
}
