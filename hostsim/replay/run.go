package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// run is a campaign that is being played. Nothing of it is shared: campaigns may run side by side.
type run struct {
	Campaign
	now      time.Duration
	agenda   agenda
	source   *source
	held     group // read, but not yet admitted
	atEnd    bool  // of the trace
	awaited  bool  // an admission is on the agenda
	servers  []*server
	gateways []*gateway
	// sessions are slots, free the slots that are free; open counts the others and places those taken under the cap.
	sessions     []*openSession
	free         []int
	open, places int
	paused       int // weight updates that are under way
	nextGateway  int
	ids          []uint64 // scratch
	shown        []uint64 // the blocks that a router is shown
	turn         Turn
	result       SeedResult
	measures     measures
}

// orderStream is the stream of chance that belongs to no session.
const orderStream = 0x6f72646572

// Run plays the campaign to its end and returns what it measured: the same for equal campaigns, DecisionsPerSecond apart,
// if the routers are deterministic. Memory is bounded by the sessions that are open. Errors: ErrCampaign, ErrEvent,
// replica.ErrConfig, a router's error, ctx's. Safe for concurrent use.
func Run(ctx context.Context, c Campaign) (*SeedResult, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := &run{Campaign: c.withDefaults()}
	r.result = SeedResult{Seed: c.Seed, Reasons: map[string]int{}}
	err := r.setUp(ctx)
	if err == nil {
		err = r.play(ctx)
	}
	if err = r.close(err); err != nil {
		return nil, err
	}
	r.finish()
	result := r.result // a copy: a pointer into r would keep all gateways, and the memory of their plugins
	return &result, nil
}

func (r *run) setUp(ctx context.Context) error {
	for range r.Replicas {
		if err := r.newServer(); err != nil {
			return err
		}
	}
	for i := range r.Gateways {
		router, err := r.NewRouter(ctx, i, r.Seed, r.fleet())
		if err != nil {
			return fmt.Errorf("replay: router of gateway %d: %w", i, err)
		}
		g := &gateway{router: router, requests: make([]int, r.Replicas), armed: forever}
		if g.waiter, _ = router.(Waiter); g.waiter != nil {
			g.waiting = map[any]*openSession{}
		}
		r.gateways = append(r.gateways, g)
		r.arm(i)
	}
	reader, err := r.Sessions()
	if err != nil {
		return err
	}
	var order *rand.Rand
	if !r.InOrder {
		order = rand.New(rand.NewPCG(r.Seed, orderStream))
	}
	r.source = newSource(reader, r.PlainSubAgents, order)
	for i := range r.Schedule {
		r.agenda.add(r.Schedule[i].At, scheduled, i, 0)
	}
	return r.admit()
}

// close joins what routers have to say at the end to err: a plugin may have crashed where no call told of it.
func (r *run) close(err error) error {
	for i, g := range r.gateways {
		if broken := g.router.Close(); broken != nil {
			err = errors.Join(err, fmt.Errorf("replay: router of gateway %d: %w", i, broken))
		}
	}
	return err
}

// play takes entries off the agenda until all sessions have ended.
func (r *run) play(ctx context.Context) error {
	for n := 0; r.open > 0 || !r.atEnd; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(r.agenda.heap) == 0 {
			return fmt.Errorf("replay: %d sessions are open and nothing will happen any more", r.open)
		}
		e := r.agenda.heap[0]
		if err := r.checkClock(e.at); err != nil {
			return err
		}
		if e.at >= r.measures.nextSample {
			r.sample(e.at)
		}
		r.now = e.at
		var err error
		if e.what == stepEnds {
			err = r.step(e)
		} else {
			r.agenda.dropFirst()
			err = r.happen(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) happen(e entry) error {
	switch e.what {
	case turnSent:
		return r.send(r.sessions[e.index])
	case turnComes:
		return r.comes(r.sessions[e.index])
	case admission:
		r.awaited = false
		return r.admit()
	case scheduled:
		return r.strike(int(e.index))
	case returns:
		return r.comeBack(int(e.index), e.round)
	case resumes:
		r.resume()
	case wakes:
		return r.wake(int(e.index), e.at)
	}
	return nil
}

// admit starts sessions as far as there is room for them and, in an open loop, as far as it is their time.
func (r *run) admit() error {
	for !r.atEnd {
		if r.held == nil {
			g, err := r.source.next()
			if errors.Is(err, io.EOF) {
				r.atEnd = true
				break
			}
			if err != nil {
				return err
			}
			r.held = g
		}
		if ok, err := r.room(); !ok {
			return err
		}
		if at := r.due(&r.held[0][0], 0); r.OpenLoop && at > r.now {
			if !r.awaited {
				r.agenda.add(at, admission, 0, 0)
				r.awaited = true
			}
			break
		}
		n := len(r.held)
		if !r.WholeGroups {
			n = 1
		}
		for _, f := range r.held[:n] {
			r.start(f)
		}
		if r.held = r.held[n:]; len(r.held) == 0 {
			r.held = nil
		}
	}
	return nil
}

// room tells whether the held sessions may start.
func (r *run) room() (bool, error) {
	need := 1
	if r.WholeGroups {
		need = len(r.held)
	}
	switch {
	case r.Concurrency == 0:
		return true, nil
	case need > r.Concurrency:
		return false, fmt.Errorf("%w: group %q has %d sessions that start together, with a concurrency of %d: raise it, or let them start as room comes",
			ErrCampaign, r.held[0][0].Group, need, r.Concurrency)
	}
	return r.places+need <= r.Concurrency, nil
}

// start begins a family with its first session.
func (r *run) start(f family) {
	of := &openFamily{sessions: f, left: len(f), begun: make([]bool, len(f))}
	r.places++
	r.begins(of, 0, 0)
}

// begins opens session i of a family. Its first turn is sent after pause.
func (r *run) begins(of *openFamily, i int, pause time.Duration) {
	of.begun[i] = true
	var s *openSession
	if n := len(r.free); n > 0 {
		s = r.sessions[r.free[n-1]]
		r.free = r.free[:n-1]
	} else {
		s = &openSession{slot: len(r.sessions)}
		s.rand, s.way = rand.New(&s.pcg), rand.New(&s.wayPCG)
		r.sessions = append(r.sessions, s)
	}
	s.reuse(&of.sessions[i], of, r.Seed)
	s.begun = -1
	r.open++
	if r.Ramp > 0 && r.now == 0 {
		pause += time.Duration(s.rand.Int64N(int64(r.Ramp)))
	}
	r.sendAfter(s, pause)
}

// sendAfter puts the session's turn on the agenda.
func (r *run) sendAfter(s *openSession, pause time.Duration) {
	if r.Jitter > 0 {
		pause += time.Duration(s.rand.Int64N(int64(r.Jitter)))
	}
	at := r.now + pause
	if r.OpenLoop {
		at = max(r.now, r.due(s.trace, s.turn))
	}
	r.agenda.add(at, turnSent, s.slot, 0)
}

// send is the client's sending of a turn.
func (r *run) send(s *openSession) error {
	if s.attempts == 0 {
		s.sent = r.now
		if s.begun < 0 {
			s.begun = r.now
		}
		if r.Clients > 1 {
			s.client = s.way.IntN(r.Clients)
		}
		r.deal(s)
	}
	return r.decide(s)
}

// deal chooses the turn's gateway.
func (r *run) deal(s *openSession) {
	switch {
	case r.Gateways == 1:
	case r.Deal == DealRandom:
		s.gateway = s.way.IntN(r.Gateways)
	case r.Deal == DealRoundRobin || s.turn == 0:
		s.gateway = r.nextGateway
		r.nextGateway = (r.nextGateway + 1) % r.Gateways
	}
}

// comes hands the turn to its engine.
func (r *run) comes(s *openSession) error {
	to := r.servers[s.replica]
	if !to.takes() {
		return r.broken(s)
	}
	t := &s.trace.Turns[s.turn]
	q := &s.request
	*q = replica.Request{Prompt: t.Input, Output: t.Output, Keys: q.Keys[:0], Tag: s.slot}
	q.Keys, r.ids = keys(q.Keys, r.ids, s.trace, s.turn, r.Engine.BlockTokens)
	if err := to.engine.Submit(r.now, q); err != nil {
		if !errors.Is(err, replica.ErrTooLong) {
			return fmt.Errorf("%w: session %q, turn %d: %w", ErrCampaign, s.trace.ID, s.turn, err)
		}
		r.gateways[s.gateway].requests[s.replica]--
		r.result.Errors++
		if err := r.tell(s, statusTooLong); err != nil {
			return err
		}
		return r.ended(s)
	}
	to.result.Requests++
	r.begin(s.replica)
	return nil
}
