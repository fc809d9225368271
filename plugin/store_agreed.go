package plugin

import "github.com/pinwheel-proxy/pinwheel/policy"

// What an agreement does to pins: see there.

// setDoubt says whether the pin of the session is in doubt, if it is on that replica, and reports whether it is there.
func (s *store) setDoubt(h policy.Hash, id uint32, on bool) (there bool) {
	s.edit(h, func(sh shard, at int) (shard, bool) {
		there = sh.pin(at).Replica == id
		change := there && sh.doubted(at) != on
		sh.setDoubt(at, on)
		return sh, change
	})
	return there
}

// keep renews the pin of the session if that is due and it is on that replica, and reports whether it did. The pin is then
// in doubt if it was, or if it goes on in another bucket of time, whose lease is then due.
func (s *store) keep(h policy.Hash, id uint32, now int64, a *agreement) (renewed, due bool) {
	renewed = s.edit(h, func(sh shard, at int) (shard, bool) {
		pin, trusted := sh.pin(at), a.trusts(sh, at)
		due = trusted && a.bucketOf(now) != a.bucketOf(pin.LastSeen)
		sh.setDoubt(at, due || !trusted)
		sh.see(at, now)
		return sh, pin.Replica == id && policy.Renew(pin, now, s.timeout)
	})
	return renewed, due
}

// unpin ends the session here unless its home has that address, as the change log says.
func (s *store) unpin(h policy.Hash, address string) {
	var id uint32
	gone := s.edit(h, func(sh shard, at int) (shard, bool) {
		id = sh.pin(at).Replica
		i := s.view.Index(id)
		return sh.remove(at), address == "" || i < 0 || s.view.List[i].Address != address
	})
	if gone {
		s.giveBack(id, 1)
	}
}

// homeOf returns the id of the replica that the session is pinned to, 0 for none.
func (s *store) homeOf(h policy.Hash) uint32 {
	if s.view.shards == 0 {
		return 0
	}
	sh, _, _ := s.readShard(s.shardOf(h))
	if at := sh.find(h); at >= 0 {
		return sh.pin(at).Replica
	}
	return 0
}

// settle pins the session to the replica that it was given, seen then and in doubt or not; placed says that it was placed by
// this gateway. A pin there that is trusted stays so. One that is trusted, and holds, on another replica means that two
// answers came in the wrong order: it is then in doubt. room is false if there was none for a pin.
func (s *store) settle(h policy.Hash, id uint32, placed, doubted bool, seen, now int64, a *agreement) (room bool) {
	counted := false
	index := s.shardOf(h)
	for range maxTries {
		sh, cas, ok := s.readShard(index)
		if !ok {
			if counted {
				s.giveBack(id, 1)
			}
			return true
		}
		at := sh.find(h)
		old, trusted := policy.Pin{}, false
		if at >= 0 {
			old = sh.pin(at)
			trusted = a.trusts(sh, at)
		}
		moves := false
		switch {
		case old.Replica == id && trusted && doubted: // as it is: its lease may be of another bucket
			sh = sh.copyTo(s.buf)
		case old.Replica == id:
			sh = sh.copyTo(s.buf)
			sh.see(at, max(seen, old.LastSeen))
			sh.setDoubt(at, doubted)
		case trusted && policy.Judge(old, &s.view.Replicas, now, s.timeout) == policy.Pinned:
			sh = sh.copyTo(s.buf)
			sh.setDoubt(at, true)
		case !counted && at < 0 && s.isFull():
			if s.makeRoom(now) == 0 {
				return false
			}
			continue
		case !counted:
			if counted = s.open(id, placed, now); !counted {
				return true
			}
			fallthrough
		default:
			moves = true
			sh = s.pinned(sh, at, h, policy.Pin{Replica: id, LastSeen: seen}, doubted)
		}
		s.buf = sh
		switch s.write(s.shards.of(index), cas) {
		case casMismatch:
			continue
		case written:
			if moves {
				counted = false // it is in its place
				s.giveBack(old.Replica, 1)
				if placed {
					s.stats.placements++
				}
			}
		}
		if counted {
			s.giveBack(id, 1)
		}
		return true
	}
	if counted {
		s.giveBack(id, 1)
	}
	s.fault(faultCAS)
	return true
}

// isFull reports whether there is no room for another session, as far as that is known.
func (s *store) isFull() bool {
	_, ok := s.refresh()
	return ok && s.view.Open() >= s.max
}

// open counts a session on the replica with that id, as placed there or not, and reports whether it did.
func (s *store) open(id uint32, placed bool, now int64) bool {
	found := false
	return s.change(func(r *policy.Replicas) bool {
		i := r.Index(id)
		if found = i >= 0; found && placed {
			r.Reserve(i, now)
		} else if found {
			r.Adopt(i, now)
		}
		return found
	}) && found
}
