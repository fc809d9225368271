package replay

import (
	"fmt"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// server is a replica: an engine, and whether it is there.
type server struct {
	member Member
	engine *replica.Engine
	// stepping: a step is on the agenda, with this round; a crash begins a new round.
	stepping bool
	round    uint16
	down     bool
	back     time.Duration // when it comes back, if it is down; forever is never
	result   ReplicaResult
	// kv is the integral of the held share of the pool over busy time.
	kv, kvMax float64
}

// takes tells whether a connection to it succeeds.
func (s *server) takes() bool { return !s.down && !s.member.Gone }

// Address is the address of replica i of every fleet: 10.0.0.1:8000 for the first.
func Address(i int) string {
	i++
	return fmt.Sprintf("10.%d.%d.%d:8000", i>>16&255, i>>8&255, i&255)
}

func (r *run) newServer() error {
	e, err := replica.NewEngine(r.Engine)
	if err != nil {
		return err
	}
	m := Member{Address: Address(len(r.servers)), Weight: 1}
	r.servers = append(r.servers, &server{member: m, engine: e, result: ReplicaResult{Address: m.Address}})
	return nil
}

// fleet is a copy that a router may keep.
func (r *run) fleet() []Member {
	fleet := make([]Member, len(r.servers))
	for i, s := range r.servers {
		fleet[i] = s.member
	}
	return fleet
}

// begin starts a step of an idle server.
func (r *run) begin(i int) {
	s := r.servers[i]
	if s.stepping || s.down || r.paused > 0 {
		return
	}
	if end, busy := s.engine.Start(r.now); busy {
		s.stepping = true
		r.agenda.add(end, stepEnds, i, s.round)
		r.weigh(s, end-r.now)
	}
}

// weigh adds the pool's use during a step that lasts d; less than zero takes back what was added for its rest.
func (r *run) weigh(s *server, d time.Duration) {
	use := float64(s.engine.Stats().Held) / float64(r.Engine.Blocks)
	s.kv += use * d.Seconds()
	s.kvMax = max(s.kvMax, use)
}

// step ends the step that is first on the agenda and begins the next.
func (r *run) step(e entry) error {
	s := r.servers[e.index]
	if e.round != s.round {
		r.agenda.dropFirst()
		return nil
	}
	for _, q := range s.engine.End() {
		if err := r.served(s, r.sessions[q.Tag]); err != nil {
			return err
		}
	}
	if r.paused == 0 {
		if end, busy := s.engine.Start(r.now); busy {
			r.agenda.moveFirst(end)
			r.weigh(s, end-r.now)
			return nil
		}
	}
	s.stepping = false
	r.agenda.dropFirst()
	return nil
}
