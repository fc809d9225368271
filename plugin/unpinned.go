package plugin

import (
	"math/rand/v2"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// rotations are the orders in which one VM chose a pool's replicas for what gets
// no pin: turns of sessions under a policy that pins none, and other requests.
// They are the VM's and not a configuration's, or each update would begin again
// with the same replicas.
type rotations struct{ turns, others policy.Rotation }

// choose names a replica for a turn that nothing is recorded of: of a session if
// the reason is Placed, else of a request that gets no pin for that reason.
func (p *pool) choose(key policy.Key, reason policy.Reason, now int64) policy.Decision {
	turns := &p.rotations.others
	if reason == policy.Placed {
		turns = &p.rotations.turns
	}
	i := p.pick(key, reason, turns, now)
	if i >= 0 && p.store.view.Probe(i, now) {
		p.store.view.changed()
		i = p.try(key, reason, turns, now)
	}
	if i < 0 {
		return policy.Decision{Reason: policy.NoReplica}
	}
	id := p.store.view.List[i].ID
	turns.Chose(id)
	return policy.Decision{Replica: id, Reason: reason}
}

func (p *pool) pick(key policy.Key, reason policy.Reason, turns *policy.Rotation, now int64) int {
	r := &p.store.view.Replicas
	q := policy.Query{Key: key, Now: now, Chosen: turns.Of(r), Random: rand.Uint64()}
	if p.weighsLoad {
		p.running = p.running[:0]
		for i := range r.List {
			p.running = append(p.running, p.inflight.on(r.List[i].ID))
		}
		q.InFlight = p.running
	}
	if reason == policy.Placed {
		return p.chooser.Choose(r, q)
	}
	return p.chooser.Unpinned(r, q)
}

// try chooses anew where the choice is a replica's trial: others must learn of it
// before the request is sent, or they would send theirs too.
func (p *pool) try(key policy.Key, reason policy.Reason, turns *policy.Rotation, now int64) (i int) {
	for range maxTries {
		cas, ok := p.store.refresh()
		i = p.pick(key, reason, turns, now)
		if !ok || i < 0 || !p.store.view.Probe(i, now) || p.store.writeRecord(cas) != casMismatch {
			return i
		}
	}
	p.store.fault(faultCAS)
	return i
}
