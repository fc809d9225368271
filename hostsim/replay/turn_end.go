package replay

import (
	"fmt"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// served ends a turn that a replica answered.
func (r *run) served(by *server, s *openSession) error {
	q := &s.request
	r.measures.turn(s.sent, q)
	by.result.PromptTokens += int64(q.Prompt)
	by.result.CachedTokens += int64(q.Cached)
	if s.visit(s.replica) {
		by.result.Sessions++
	}
	if s.last >= 0 && s.last != s.replica {
		r.result.Moves++
	}
	s.last = s.replica
	r.dwell(s)
	s.spans = append(s.spans, TurnSpan{Replica: s.replica, Sent: s.sent.Seconds(), Admitted: q.Admitted.Seconds(),
		First: q.FirstToken.Seconds(), End: q.Finished.Seconds(), Cached: q.Cached, Prompt: q.Prompt})
	r.gateways[s.gateway].requests[s.replica]--
	if err := r.tell(s, statusOK); err != nil {
		return err
	}
	return r.ended(s)
}

// ended goes on after a turn, whether it was served or not: with sub-agents that followed it, and the session's next turn
// or its end.
func (r *run) ended(s *openSession) error {
	r.result.Turns++
	if r.Progress != nil {
		r.Progress(r.result.Turns)
	}
	r.spawn(s)
	s.turn++
	s.resetTurn()
	if s.turn == len(s.trace.Turns) {
		return r.leave(s)
	}
	r.sendAfter(s, r.pause(s.trace.Turns[s.turn].Think, s.rand))
	return nil
}

// spawn begins the sub-agents that were recorded after the turn that has ended and before the next.
func (r *run) spawn(s *openSession) {
	f := s.family
	for i := range f.sessions {
		child := &f.sessions[i]
		if f.begun[i] || child.Parent != s.trace.ID {
			continue
		}
		if s.turn+1 < len(s.trace.Turns) && s.trace.Start+s.trace.Turns[s.turn+1].At <= child.Start {
			continue
		}
		r.begins(f, i, r.pause(child.Start-answered(s.trace, s.turn), s.rand))
	}
}

// due is when the turn is sent in an open loop.
func (r *run) due(s *trace.Session, turn int) time.Duration {
	return r.scale(s.Start + s.Turns[turn].At)
}

// leave ends a session, and with the last of its family gives the place to others.
func (r *run) leave(s *openSession) error {
	r.measures.session(r.now-s.begun, r.now, s)
	r.result.Sessions++
	if !r.KeepSessions {
		g := r.gateways[s.gateway]
		if err := r.call(s.gateway, func() error { return g.router.Finish(r.now, s.trace.ID) }); err != nil {
			return fmt.Errorf("replay: router of gateway %d: end of session %q: %w", s.gateway, s.trace.ID, err)
		}
	}
	r.open--
	s.family.left--
	others := s.family.left > 0
	s.trace, s.family = nil, nil
	r.free = append(r.free, s.slot)
	if others {
		return nil
	}
	r.places--
	return r.admit()
}
