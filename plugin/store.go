package plugin

import "github.com/pinwheel-proxy/pinwheel/policy"

// store keeps the pins and counts of one pool in shared data, for all workers at
// once.
//
// A pin and its count stand in two values that cannot change together, so they
// change in a fixed order:
//
//  1. To pin: count one session on the replica, then write the pin. Whoever
//     loses the pin to another turn of the session takes the winner's and gives
//     its own count back.
//  2. To unpin or move: take the pin out or over, then take the old count off.
//     Only the one who took the pin does.
//
// So each count that is taken off was put on before, and no count goes below
// zero. A VM that dies between the two steps leaves a count too high by one;
// reconcile finds it.
type store struct {
	data    sharedData
	prefix  string
	members []policy.Member
	sum     uint64 // sumOf(members, timeout), and of where they come from
	// discovers says that the gateway names the members, and grace for how long (ms)
	// one that it no longer names may come back as what it was.
	discovers bool
	grace     int64
	policy    policy.Policy
	health    policy.HealthRule
	timeout   int64 // ms
	// agreed says that pins are agreed on with other gateways: agreement renews them.
	agreed bool
	max    uint64
	// prefixes is what the policy knows of prompts, nil if it asks for none.
	prefixes *prefixes
	// held is the share of its prompt that the replica of the session that was placed
	// last was known to hold.
	held float64

	// heard is set when hear was called since the last tick; newest is the newest
	// connection that it heard of while the members were in force.
	heard  bool
	newest uint64

	// view is the pool's record as last read. Sticky turns trust it; placement
	// reads it anew.
	view record

	key, buf  []byte    // scratch
	at        placement // that of the running callback
	shards    shardNames
	stats     storeStats
	sweeping  uint32 // the shard that was swept last
	noRoom    int64  // when a sweep for room last found none, ms
	suspicion suspicion
}

// storeStats counts what the store did since the numbers were last reported.
type storeStats struct {
	retries, expired, released, repaired, placements, fallbacks, followed uint64
	faults                                                                [numFaults]uint64
}

// maxTries bounds every compare-and-swap loop. Each failed try means that
// another worker succeeded.
const maxTries = 64

func newStore(data sharedData, pool PoolConfig, session SessionConfig) *store {
	s := &store{
		data:    data,
		prefix:  keyRoot + pool.Name + "/",
		members: pool.Members,
		policy:  policy.StickyLeastLoaded{},
		timeout: session.IdleTimeout.Milliseconds(),
		max:     uint64(session.MaxSessions),
		noRoom:  -roomPause,
	}
	s.shards = newShardNames(s.prefix + "s/")
	s.sum = sumOf(s.members, s.timeout)
	if pool.Discovered {
		s.discovers, s.members = true, nil
		s.sum += policy.RankAddress("hosts of " + pool.Cluster)
	}
	// Until shared data answers, requests are at least spread.
	s.view.Apply(s.members, 0, 0)
	return s
}

// look finds the session's pin and renews it if it holds: the reason is then
// Pinned. One that is agreed on is not renewed here. ok is false when shared data could not be used.
func (s *store) look(p *placement, key policy.Key, now int64) (ok bool) {
	if s.view.shards == 0 && !s.exists(now) {
		return false
	}
	p.index = s.shardOf(key.Hash)
	for range maxTries {
		if p.shard, p.cas, ok = s.readShard(p.index); !ok {
			return false
		}
		if p.at = p.shard.find(key.Hash); p.at < 0 {
			p.old, p.reason = policy.Pin{}, policy.Placed
			return true
		}
		p.old = p.shard.pin(p.at)
		p.reason = policy.Judge(p.old, &s.view.Replicas, now, s.timeout)
		if p.reason != policy.Pinned {
			p.reason = s.judge(p.old, now)
		}
		if p.reason != policy.Pinned || !policy.Renew(p.old, now, s.timeout) || s.agreed ||
			s.renew(p.index, p.shard, p.cas, p.at, now) {
			return true
		}
	}
	return s.fault(faultCAS)
}

// current makes the view current, and the pool's record exist. It is false when
// shared data could not be used.
func (s *store) current(now int64) bool {
	_, ok := s.refresh()
	return ok && s.exists(now)
}

// exists makes the pool's record exist, and is false when shared data could not be
// used.
func (s *store) exists(now int64) bool { return s.view.shards != 0 || s.adopt(now, 0) }

// judge rules on a pin by the view, and once more by a fresh view before it
// turns a session away from its replica.
func (s *store) judge(pin policy.Pin, now int64) policy.Reason {
	reason := policy.Judge(pin, &s.view.Replicas, now, s.timeout)
	if reason == policy.FailoverRemoved || reason == policy.FailoverUnhealthy {
		if _, ok := s.refresh(); ok {
			reason = policy.Judge(pin, &s.view.Replicas, now, s.timeout)
		}
	}
	return reason
}

// renew records that the session at position at was seen now. It is false if the
// shard has changed since it was read.
func (s *store) renew(index uint32, sh shard, cas uint32, at int, now int64) bool {
	s.buf = sh.copyTo(s.buf)
	shard(s.buf).see(at, now)
	return s.write(s.shards.of(index), cas) != casMismatch
}

// placement is a session as its turn finds it: its shard as read, the position of
// its pin there (-1: none), that pin, and why it does not hold if it does not.
type placement struct {
	index  uint32
	shard  shard
	cas    uint32
	at     int
	old    policy.Pin
	reason policy.Reason
}

// place chooses a replica for the session, counts it there and pins it.
func (s *store) place(key policy.Key, prompt *policy.Prompt, now int64, p *placement) (d policy.Decision, ok bool) {
	return s.placeBy(s.policy, key, prompt, now, p)
}

func (s *store) placeBy(chooser policy.Policy, key policy.Key, prompt *policy.Prompt, now int64, p *placement) (d policy.Decision, ok bool) {
	known := s.recall(prompt, now)
	id, refused, ok := s.reserve(chooser, key, p.old, known, now)
	if !ok || id == 0 {
		return policy.Decision{Reason: refused}, ok
	}
	for range maxTries {
		s.buf = s.pinned(p.shard, p.at, key.Hash, policy.Pin{Replica: id, LastSeen: now}, s.agreed)
		switch s.write(s.shards.of(p.index), p.cas) {
		case written:
			s.giveBack(p.old.Replica, 1)
			s.stats.placements++
			if p.reason == policy.Expired { // before a sweep found it
				s.stats.expired++
			}
			s.learn(prompt, id)
			return policy.Decision{Replica: id, Reason: p.reason}, true
		case failed:
			s.giveBack(id, 1)
			return policy.Decision{}, false
		}
		if p.shard, p.cas, ok = s.readShard(p.index); !ok {
			s.giveBack(id, 1)
			return policy.Decision{}, false
		}
		if winner, won := s.overtaken(p, key, now); won {
			s.giveBack(id, 1)
			return policy.Decision{Replica: winner.Replica, Reason: policy.Pinned}, true
		}
	}
	s.giveBack(id, 1)
	return policy.Decision{}, s.fault(faultCAS)
}

// pinned returns a copy of the shard with a pin put at that place, in doubt or not.
func (s *store) pinned(sh shard, at int, h policy.Hash, pin policy.Pin, doubted bool) shard {
	sh = sh.copyTo(s.buf).put(at, h, pin)
	if at < 0 {
		at = sh.len() - 1
	}
	if doubted {
		sh.setDoubt(at, true)
	}
	return sh
}

// recall returns what is known of a prompt. It reads the record first, for what is
// looked up depends on it, and leaves the time between reading the record for the
// choice and writing it as short as it is without a prompt.
func (s *store) recall(prompt *policy.Prompt, now int64) policy.PrefixMatch {
	if s.prefixes == nil || prompt == nil {
		return policy.PrefixMatch{}
	}
	s.prefixes.read = s.prefixes.read[:0] // of an earlier callback, perhaps
	if _, ok := s.refresh(); !ok {
		return policy.PrefixMatch{}
	}
	return s.prefixes.lookup(prompt, &s.view.Replicas, now)
}

// learn notes that the replica with that id was given the prompt.
func (s *store) learn(prompt *policy.Prompt, id uint32) {
	if s.prefixes != nil && prompt != nil {
		s.prefixes.record(prompt, id, &s.view.Replicas)
	}
}

// overtaken looks for what another worker did to the session meanwhile: its pin
// holds (won), or it is another one to take over, or it is gone.
func (s *store) overtaken(p *placement, key policy.Key, now int64) (winner policy.Pin, won bool) {
	if p.at = p.shard.find(key.Hash); p.at < 0 {
		p.old, p.reason = policy.Pin{}, policy.Placed
		return winner, false
	}
	p.old = p.shard.pin(p.at)
	reason := s.judge(p.old, now)
	if reason == policy.Pinned {
		return p.old, true
	}
	p.reason = reason
	return winner, false
}

// reserve chooses a replica and counts the session there in one step. id is 0
// when there is none to have; refused says why.
func (s *store) reserve(chooser policy.Policy, key policy.Key, old policy.Pin, known policy.PrefixMatch, now int64) (id uint32, refused policy.Reason, ok bool) {
	for range maxTries {
		cas, ok := s.refresh()
		if !ok {
			return 0, policy.Error, false
		}
		if s.view.shards == 0 { // the gateway lost the record: an empty pool
			if !s.adopt(now, 0) {
				return 0, policy.Error, false
			}
			continue
		}
		if old.Replica == 0 && s.view.Open() >= s.max {
			if s.makeRoom(now) == 0 {
				return 0, policy.TableFull, true
			}
			continue
		}
		i := chooser.Choose(&s.view.Replicas, policy.Query{Key: key, Now: now, Leaving: old.Replica, Prefix: known})
		if i < 0 {
			return 0, policy.NoReplica, true
		}
		s.view.Reserve(i, now)
		switch s.writeReplica(i, cas) {
		case written:
			id = s.view.List[i].ID
			if s.held = 0; known.Holds(id) {
				s.held = known.Share
			}
			return id, 0, true
		case failed:
			return 0, policy.Error, false
		}
	}
	return 0, policy.Error, s.fault(faultCAS)
}

// giveBack takes n sessions off the replica with that id; 0 is none.
func (s *store) giveBack(id, n uint32) {
	if id == 0 {
		return
	}
	for range maxTries {
		cas, ok := s.refresh()
		if !ok {
			return
		}
		i := s.view.Index(id)
		if i < 0 {
			return
		}
		if s.view.Return(id, n) > 0 {
			s.fault(faultCount)
		}
		if s.writeReplica(i, cas) != casMismatch {
			return
		}
	}
	s.fault(faultCAS)
}

// edit changes the shard of the session, if it has a pin, by f, which gets a copy to change and the pin's position, and tells
// whether to write what it returns. It is asked anew when another worker was faster. edit reports whether it was written.
func (s *store) edit(h policy.Hash, f func(sh shard, at int) (shard, bool)) bool {
	if s.view.shards == 0 {
		return false
	}
	index := s.shardOf(h)
	for range maxTries {
		sh, cas, ok := s.readShard(index)
		if !ok {
			return false
		}
		at := sh.find(h)
		if at < 0 {
			return false
		}
		if s.buf, ok = f(sh.copyTo(s.buf), at); !ok {
			return false
		}
		if done := s.write(s.shards.of(index), cas); done != casMismatch {
			return done == written
		}
	}
	return s.fault(faultCAS)
}

// finish ends the session and reports whether it was open.
func (s *store) finish(h policy.Hash, now int64) bool {
	if !s.exists(now) {
		return false
	}
	var replica uint32
	gone := s.edit(h, func(sh shard, at int) (shard, bool) {
		replica = sh.pin(at).Replica
		return sh.remove(at), true
	})
	if !gone {
		return false
	}
	s.giveBack(replica, 1)
	if s.view.Void(replica) {
		return false
	}
	s.stats.released++
	return true
}

// isOpen reports whether the session has a pin.
func (s *store) isOpen(h policy.Hash, now int64) bool {
	if !s.exists(now) {
		return false
	}
	sh, _, ok := s.readShard(s.shardOf(h))
	return ok && sh.find(h) >= 0
}

// addressOf returns the address of the replica with that id, "" if there is none.
func (s *store) addressOf(id uint32) string {
	if i := s.view.Index(id); i >= 0 {
		return s.view.List[i].Address
	}
	return ""
}

// touch keeps the pin of a session alive while a turn of it runs.
func (s *store) touch(h policy.Hash, replica uint32, now int64) {
	s.edit(h, func(sh shard, at int) (shard, bool) {
		pin := sh.pin(at)
		sh.see(at, now)
		return sh, pin.Replica == replica && policy.Renew(pin, now, s.timeout)
	})
}

// forgetRemoved drops removed replicas that have no session and no running
// request left in the view, if it still stands as it was read with that cas:
// what the gauges last showed of a forgotten replica must have been zero.
func (s *store) forgetRemoved(running map[uint32]uint32, cas uint32, now int64) {
	for i := range s.view.List {
		if c := &s.view.List[i]; c.State == policy.Removed && running[c.ID] > 0 {
			return
		}
	}
	if s.view.Forget(now, s.grace) {
		s.writeRecord(cas)
	}
}
