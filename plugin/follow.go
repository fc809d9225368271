package plugin

import "github.com/pinwheel-proxy/pinwheel/policy"

// follow moves a session to the replica that served a turn of it, if the one it is
// pinned to cannot keep it: what is cached of it is there now. It reports whether
// it did.
func (s *store) follow(h policy.Hash, pinned, served uint32, now int64) bool {
	index := s.shardOf(h)
	sh, cas, ok := s.readShard(index)
	if !ok {
		return false
	}
	at := sh.find(h)
	if at < 0 || sh.pin(at).Replica != pinned || !s.view.Follows(pinned, served, now) || !s.open(served, true, now) {
		return false
	}
	s.buf = s.pinned(sh, at, h, policy.Pin{Replica: served, LastSeen: now}, s.agreed)
	if s.write(s.shards.of(index), cas) != written { // another turn decided meanwhile
		s.giveBack(served, 1)
		return false
	}
	s.stats.followed++
	s.giveBack(pinned, 1)
	return true
}
