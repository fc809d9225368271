package policy

// Pool is one pool's sessions and replicas for one caller at a time. The
// plugin's store does the same over shared data for many.
//
// Invariant: for each replica, Open is the number of pins on it.
type Pool struct {
	Replicas
	// Policy places sessions; nil is StickyLeastLoaded.
	Policy Policy
	// Prefixes is what CacheAware knows of prompts; its zero value knows nothing.
	Prefixes PrefixIndex
	// Timeout is the idle timeout in milliseconds, above 0.
	Timeout int64
	// MaxSessions bounds the number of pins, 1 or more.
	MaxSessions int
	// Seed is the state of the pool's random numbers.
	Seed uint64

	pins     map[Hash]Pin
	running  map[uint32]uint32 // by replica id
	inFlight []uint32          // scratch: running by position
	// Of turns of sessions, and of other requests.
	turns, others Rotation
}

// Decision is where a turn goes.
type Decision struct {
	// Replica is a replica's id, 0 for none (NoReplica).
	Replica uint32
	Reason  Reason
	// Panic says that no replica was eligible and one was named all the same.
	Panic bool
}

// Turn decides a turn of the session at now and records it. prompt is the turn's,
// for CacheAware; nil where nothing is known of it.
func (p *Pool) Turn(key Key, prompt *Prompt, now int64) Decision {
	policy := p.policy()
	if !policy.Pins() {
		return p.choose(policy.Choose, p.query(key, now, &p.turns), &p.turns, Placed)
	}
	reason := Placed
	pin, known := p.pins[key.Hash]
	if known {
		reason = Judge(pin, &p.Replicas, now, p.Timeout)
		if reason == Pinned {
			p.Touch(key, now)
			return Decision{pin.Replica, Pinned, p.Panicking(now)}
		}
	} else if len(p.pins) >= p.MaxSessions && p.Sweep(now) == 0 {
		return p.Unrecorded(key, TableFull, now)
	}
	q := p.query(key, now, &p.turns)
	q.Leaving = pin.Replica
	if prompt != nil {
		q.Prefix = p.Prefixes.Lookup(prompt, &p.Replicas, now)
	}
	panicking := p.Panicking(now)
	i := policy.Choose(&p.Replicas, q)
	if i < 0 {
		return Decision{Reason: NoReplica}
	}
	p.Reserve(i, now)
	id := p.List[i].ID
	p.pin(key.Hash, Pin{id, now})
	if prompt != nil {
		p.Prefixes.Record(prompt, id, &p.Replicas)
	}
	return Decision{id, reason, panicking}
}

// Keeps reports whether the session has a replica that its turn at now goes to.
// The prompt of such a turn plays no part.
func (p *Pool) Keeps(key Key, now int64) bool {
	pin, ok := p.pins[key.Hash]
	return ok && Judge(pin, &p.Replicas, now, p.Timeout) == Pinned
}

func (p *Pool) policy() Policy {
	if p.Policy == nil {
		return StickyLeastLoaded{}
	}
	return p.Policy
}

func (p *Pool) query(key Key, now int64, turns *Rotation) Query {
	p.inFlight = p.inFlight[:0]
	for i := range p.List {
		p.inFlight = append(p.inFlight, p.running[p.List[i].ID])
	}
	p.Seed += 0x9e3779b97f4a7c15
	return Query{Key: key, Now: now, Chosen: turns.Of(&p.Replicas), InFlight: p.inFlight, Random: mix(p.Seed)}
}

// choose makes a choice that is not recorded but for the replica's trial.
func (p *Pool) choose(choose func(*Replicas, Query) int, q Query, turns *Rotation, reason Reason) Decision {
	panicking := p.Panicking(q.Now)
	i := choose(&p.Replicas, q)
	if i < 0 {
		return Decision{Reason: NoReplica}
	}
	p.Probe(i, q.Now)
	id := p.List[i].ID
	turns.Chose(id)
	return Decision{id, reason, panicking}
}

func (p *Pool) pin(h Hash, pin Pin) {
	if p.pins == nil {
		p.pins = make(map[Hash]Pin)
	}
	if old, ok := p.pins[h]; ok {
		p.Return(old.Replica, 1)
	}
	p.pins[h] = pin
}

// Touch records that a turn of the session was seen at now, if it is pinned.
func (p *Pool) Touch(key Key, now int64) {
	if pin, ok := p.pins[key.Hash]; ok && Renew(pin, now, p.Timeout) {
		pin.LastSeen = now
		p.pins[key.Hash] = pin
	}
}

// Unrecorded decides a request at now that gets no pin, for the reason given. key
// is zero unless the request has a session.
func (p *Pool) Unrecorded(key Key, reason Reason, now int64) Decision {
	return p.choose(p.policy().Unpinned, p.query(key, now, &p.others), &p.others, reason)
}

// Follow moves the session at now to the replica that answered a turn of it, if
// the pinned one cannot keep it, and reports whether it did.
func (p *Pool) Follow(key Key, served uint32, now int64) bool {
	pin, ok := p.pins[key.Hash]
	if !ok || !p.Follows(pin.Replica, served, now) {
		return false
	}
	p.Reserve(p.Index(served), now)
	p.pin(key.Hash, Pin{served, now})
	return true
}

// Begin counts a running request on the replica with that id.
func (p *Pool) Begin(id uint32) {
	if p.running == nil {
		p.running = make(map[uint32]uint32)
	}
	p.running[id]++
}

// End counts one running request less, if there is one.
func (p *Pool) End(id uint32) {
	if p.running[id] > 0 {
		p.running[id]--
	}
}

// Finish ends the session and reports whether it was open.
func (p *Pool) Finish(key Key) bool {
	pin, ok := p.pins[key.Hash]
	if ok {
		delete(p.pins, key.Hash)
		p.Return(pin.Replica, 1)
	}
	return ok
}

// Sweep ends the sessions that have expired at now and returns their number.
func (p *Pool) Sweep(now int64) (expired int) {
	for h, pin := range p.pins {
		if Over(pin, &p.Replicas, now, p.Timeout) {
			delete(p.pins, h)
			p.Return(pin.Replica, 1)
			expired++
		}
	}
	return expired
}

// Reset ends all sessions at now, see Replicas.Reset.
func (p *Pool) Reset(now int64) (ended uint64) {
	ended = p.Replicas.Reset(now)
	for h, pin := range p.pins {
		delete(p.pins, h)
		p.Return(pin.Replica, 1)
	}
	return ended
}

// Sessions returns the number of pins.
func (p *Pool) Sessions() int { return len(p.pins) }
