package policy

// Pool is one pool's sessions and replicas for one caller at a time. The
// plugin's store does the same over shared data for many.
//
// Invariant: for each replica, Open is the number of pins on it.
type Pool struct {
	Replicas
	// Timeout is the idle timeout in milliseconds, above 0.
	Timeout int64
	// MaxSessions bounds the number of pins, 1 or more.
	MaxSessions int

	pins     map[Hash]Pin
	unpinned uint64
}

// Decision is where a turn goes.
type Decision struct {
	// Replica is a replica's id, 0 for none (NoReplica).
	Replica uint32
	Reason  Reason
}

// Turn decides a turn of the session at now and records it.
func (p *Pool) Turn(key Key, now int64) Decision {
	reason := Placed
	pin, known := p.pins[key.Hash]
	if known {
		reason = Judge(pin, &p.Replicas, now, p.Timeout)
		if reason == Pinned {
			p.Touch(key, now)
			return Decision{pin.Replica, Pinned}
		}
	} else if len(p.pins) >= p.MaxSessions && p.Sweep(now) == 0 {
		return p.Unrecorded(TableFull)
	}
	i := StickyLeastLoaded(&p.Replicas, key, pin.Replica)
	if i < 0 {
		return Decision{0, NoReplica}
	}
	p.Reserve(i)
	p.pin(key.Hash, Pin{p.List[i].ID, now})
	return Decision{p.List[i].ID, reason}
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

// Unrecorded decides a request that gets no pin, for the reason given.
func (p *Pool) Unrecorded(reason Reason) Decision {
	i := Unpinned(&p.Replicas, p.unpinned)
	if i < 0 {
		return Decision{0, NoReplica}
	}
	p.unpinned++
	return Decision{p.List[i].ID, reason}
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
		if Idle(pin, now, p.Timeout) {
			delete(p.pins, h)
			p.Return(pin.Replica, 1)
			expired++
		}
	}
	return expired
}

// Sessions returns the number of pins.
func (p *Pool) Sessions() int { return len(p.pins) }
