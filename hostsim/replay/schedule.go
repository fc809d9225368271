package replay

import (
	"math"
	"time"
)

// strike lets event i of the schedule happen.
func (r *run) strike(i int) error {
	e := &r.Schedule[i]
	if e.Kind.numbered() && e.Replica >= len(r.servers) {
		return nil // it has not joined yet
	}
	if e.Kind.OfEtcd() {
		return nil // etcd looks itself, see Etcd
	}
	switch e.Kind {
	case EventFail:
		return r.fail(e.Replica, e.For)
	case EventJoin:
		if err := r.newServer(); err != nil {
			return err
		}
	case EventDrain, EventUndrain:
		r.servers[e.Replica].member.Draining = e.Kind == EventDrain
	case EventRemove:
		r.servers[e.Replica].member.Gone = true
	case EventUpdate:
		r.pauseAll(e.For)
		if e.Every > 0 {
			r.agenda.add(r.now+e.Every, scheduled, i, 0)
		}
		return nil
	}
	return r.members()
}

// forever is when a replica comes back that does not.
const forever = time.Duration(math.MaxInt64)

// fail crashes a replica. Its requests are sent again in the order in which it had them. One that is down already has
// none, and comes back at the later of both ends.
func (r *run) fail(i int, away time.Duration) error {
	s := r.servers[i]
	back := forever
	if away > 0 {
		back = r.now + away
	}
	if s.member.Gone || s.down && back <= s.back {
		return nil
	}
	if s.stepping {
		end, _ := s.engine.Start(r.now) // of the step that runs
		r.weigh(s, r.now-end)
	}
	s.down, s.back, s.stepping = true, back, false
	s.round++
	if back != forever {
		r.agenda.add(back, returns, i, s.round)
	}
	for _, q := range s.engine.Crash(r.now) {
		if err := r.broken(r.sessions[q.Tag]); err != nil {
			return err
		}
	}
	return nil
}

// comeBack ends a failure.
func (r *run) comeBack(i int, round uint16) error {
	if s := r.servers[i]; s.round == round {
		s.down = false
	}
	return nil
}

// pauseAll keeps engines from starting steps.
func (r *run) pauseAll(d time.Duration) {
	r.paused++
	r.agenda.add(r.now+d, resumes, 0, 0)
}

// resume ends an update: nothing that was cached before is worth anything now.
func (r *run) resume() {
	r.paused--
	for i, s := range r.servers {
		s.engine.ResetCache()
		r.begin(i)
	}
}
