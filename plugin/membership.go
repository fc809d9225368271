package plugin

import (
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// membership says whose members a pool has. A gateway runs old configurations
// beside the new one until their streams have drained, and it may return to an
// old one without a word: Envoy calls no configure for a configuration whose
// plugin context still lives (1.36 to 1.40, run). What tells is the connections:
// the configuration in force gets the new ones, and their ids rise through the
// process.
type membership struct {
	// sum is sumOf the members and timeout in force; 0 means that there were none
	// yet.
	sum uint64
	// adopted is when they came into force, in ms.
	adopted int64
	// since is the id of a connection that they served at first; 0 means that they
	// have served none.
	since uint64
}

// settling is the time after a change, in ms, in which connections of the old and
// the new configuration may still be of one age, and in which the old one cannot
// return. Two configurations that give one pool different replicas, and both
// serve, replace each other no faster than that.
const settling = 1000

// sumOf identifies members, in whatever order, and the timeout (ms) that sweeps go
// by: a configuration that changes the timeout alone supersedes too, or the old
// one would hold the lease and end sessions by its own until it has drained.
func sumOf(members []policy.Member, timeout int64) uint64 {
	sum := policy.RankAddress(strconv.FormatInt(timeout, 10))
	for _, m := range members {
		sum += policy.RankAddress(m.Address + " " + m.State.String() + " " + strconv.Itoa(int(m.Weight)))
	}
	return max(sum, 1)
}

// inForce reports whether the pool has this store's members, as last read.
func (s *store) inForce() bool { return s.view.membership.sum == s.sum }

// adopt makes the store's members the pool's, unless they are already, and reads
// the pool's record. since is the connection that shows that they are in force, 0
// for none. It is false when shared data could not be used.
func (s *store) adopt(now int64, since uint64) bool {
	for range maxTries {
		cas, ok := s.refresh()
		if !ok {
			return false
		}
		if s.view.shards != 0 && s.inForce() {
			return true
		}
		if s.view.shards == 0 {
			s.view.shards = shardsFor(s.max)
		}
		s.view.membership = membership{s.sum, now, since}
		if !s.discovers { // else what is there holds until the gateway has answered
			s.view.Apply(s.members, now, 0)
		}
		switch s.writeRecord(cas) {
		case written:
			return true
		case failed:
			return false
		}
	}
	return s.fault(faultCAS)
}

// hear learns from the connection of a stream, 0 if unknown, whose members are in
// force, and brings the store's back into force when they get connections newer
// than those of the members that replaced them.
func (s *store) hear(connection uint64, now int64) {
	cas, ok := s.refresh()
	if !ok || s.view.shards == 0 {
		return
	}
	s.heard = true
	m := &s.view.membership
	settled := now-m.adopted >= settling
	switch {
	case s.inForce():
		s.newest = max(s.newest, connection)
		if connection > m.since && (m.since == 0 || !settled) {
			m.since = connection
			s.writeRecord(cas) // if another worker was faster, its note will do
		}
	case !settled:
		s.newest = max(s.newest, connection)
	case connection > s.newest && connection > m.since:
		s.adopt(now, connection)
	}
}

// discovered makes the members that the gateway named at now the pool's, if this
// store's configuration is in force. A worker that does not lead, whose answer may
// be an old one, fills an empty pool only.
//
// An address that comes back within the grace is the replica that went.
func (s *store) discovered(members []policy.Member, leading bool, now int64) {
	s.change(func(r *policy.Replicas) bool {
		return s.view.shards != 0 && s.inForce() && (leading || len(r.List) == 0) && r.Apply(members, now, s.grace)
	})
}
