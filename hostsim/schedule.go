package hostsim

import (
	"errors"
	"fmt"
)

// schedule lets one of several workers run at a time, from one of its host calls to the next.
type schedule struct {
	everyCall bool
	players   []*player // in the order main thread, worker 0, worker 1 and so on
	events    chan scheduleEvent
	trace     []*Access
	choices   []int
	abandoned bool
}

// player is a worker that takes part.
type player struct {
	worker *Worker
	fn     func(*Worker)
	gate   chan struct{}
	done   bool
	next   Access // the call before which it waits, unless done
}

// scheduleEvent says that a worker has stopped: before a host call, or for good.
type scheduleEvent struct {
	player *player
	done   bool
	panic  any
}

// errAbandoned ends a schedule's workers in the middle.
var errAbandoned = errors.New("the schedule was given up")

// newSchedule has every function of a scenario run to its first host call.
func (h *Host) newSchedule(sc *Scenario) *schedule {
	if len(sc.Workers) > len(h.workers) {
		panic(fmt.Sprintf("hostsim: a scenario of %d functions on %d workers", len(sc.Workers), len(h.workers)))
	}
	s := &schedule{everyCall: sc.EveryCall, events: make(chan scheduleEvent)}
	s.join(h.main, sc.Main)
	for i, fn := range sc.Workers {
		s.join(h.workers[i], fn)
	}
	return s
}

func (s *schedule) join(w *Worker, fn func(*Worker)) {
	if fn != nil {
		s.players = append(s.players, &player{worker: w, fn: fn, gate: make(chan struct{})})
	}
}

// played is what has come of it.
func (s *schedule) played() Played {
	p := Played{Choices: s.choices}
	for _, a := range s.trace {
		p.Accesses = append(p.Accesses, *a)
	}
	return p
}

// play runs a scenario to its end: first every function to its first host call, in order, then always the player that
// choose picks among those who wait. It panics with the first thing that a function panicked with.
func (h *Host) play(s *schedule, choose func(ready []*player) *player) {
	h.schedule.Store(s)
	defer h.schedule.Store(nil)
	var failure any
	resume := func(p *player) {
		p.gate <- struct{}{}
		ev := <-s.events
		ev.player.done = ev.done
		if ev.panic != nil && failure == nil {
			failure = ev.panic
		}
	}
	for _, p := range s.players {
		go s.run(p)
		resume(p)
	}
	for ready := s.ready(); len(ready) > 0; ready = s.ready() {
		p := choose(ready)
		s.choices = append(s.choices, p.worker.index)
		resume(p)
	}
	if failure != nil {
		panic(failure)
	}
}

// ready are the players that wait before a host call.
func (s *schedule) ready() []*player {
	var ready []*player
	for _, p := range s.players {
		if !p.done {
			ready = append(ready, p)
		}
	}
	return ready
}

// run is one worker's goroutine.
func (s *schedule) run(p *player) {
	<-p.gate
	ev := scheduleEvent{player: p, done: true}
	defer func() { s.events <- ev }() // also when a test calls Goexit
	defer func() { ev.panic = recover() }()
	p.fn(p.worker)
}

// player finds the worker's player, or nil.
func (s *schedule) player(worker int) *player {
	for _, p := range s.players {
		if p.worker.index == worker {
			return p
		}
	}
	return nil
}

// giveWay stops the worker before a host call that is a step of an interleaved run, until it is chosen. It returns nil
// where the call is no step: no run is on, or the call touches nothing that is shared, or it comes from within an
// allocation, which is in the middle of another call.
func (b *binding) giveWay(v *vm, args []uint64) *Access {
	s := v.host.schedule.Load()
	if s == nil || v.phase != phaseRun {
		return nil
	}
	next := Access{Worker: v.worker, Call: b.label}
	if b.touch != nil {
		next.Kind, next.On = b.touch(v, args)
	}
	if next.Kind == AccessOwn && !s.everyCall {
		return nil
	}
	return s.step(next)
}

// beforeEvents is giveWay for a worker that is to look for events, where messages may be among them: only one that has
// registered a queue hears of any.
func (h *Host) beforeEvents(w *Worker) {
	if s := h.schedule.Load(); s != nil && w.mail.isUsed() {
		s.step(Access{Worker: w.index, Call: "RunDue", Kind: AccessRead, On: "queues"})
	}
}

// step stops the worker until it is chosen to go on. It returns the step as the trace has it, or nil where the worker
// takes no part.
func (s *schedule) step(next Access) *Access {
	p := s.player(next.Worker)
	if p == nil {
		return nil
	}
	p.next = next
	s.events <- scheduleEvent{player: p}
	<-p.gate
	if s.abandoned {
		panic(errAbandoned)
	}
	s.trace = append(s.trace, &next)
	return &next
}

// answered notes what a step was answered; a is nil for what was none.
func (a *Access) answered(stack []uint64) {
	if a != nil && len(stack) > 0 {
		a.Status = Status(stack[0])
	}
}
