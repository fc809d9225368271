package plugin

import "github.com/pinwheel-proxy/pinwheel/policy"

// sweepShard ends the sessions of shard i that have expired and returns their
// number. A shard that another worker changes meanwhile is left for next time.
func (s *store) sweepShard(i uint32, now int64) (expired int) {
	sh, cas, ok := s.readShard(i)
	if !ok {
		return 0
	}
	var gone []uint32
	s.buf = append(s.buf[:0], schemaVersion)
	for at := range sh.len() {
		pin := sh.pin(at)
		if policy.Idle(pin, now, s.timeout) {
			gone = append(gone, pin.Replica)
			continue
		}
		s.buf = shard(s.buf).put(-1, sh.hash(at), pin)
	}
	if len(gone) == 0 || s.write(s.shardKey(i), cas) != written {
		return 0
	}
	for _, id := range gone {
		s.giveBack(id, 1)
	}
	s.stats.expired += uint64(len(gone))
	return len(gone)
}

// sweepNext sweeps the next shard in turn.
func (s *store) sweepNext(now int64) (expired int) {
	if s.view.shards == 0 {
		return 0
	}
	s.sweeping = (s.sweeping + 1) & (s.view.shards - 1)
	return s.sweepShard(s.sweeping, now)
}

// sweep sweeps the next n shards. It is for ticks: it forgets what the callback
// has read.
func (s *store) sweep(n uint32, now int64) {
	for range min(n, s.view.shards) {
		s.sweepNext(now)
		s.data.forget()
	}
}

// roomShards bounds what one turn sweeps when the table is full: some 100 us.
// Ticks sweep the rest.
const roomShards = 64

// makeRoom sweeps until a session has expired, and returns the number that did.
func (s *store) makeRoom(now int64) (expired int) {
	for i := uint32(0); i < min(roomShards, s.view.shards) && expired == 0; i++ {
		expired = s.sweepNext(now)
	}
	return expired
}

// reconcile compares the pool's counts with its pins and repairs those that
// differ: a VM that died between counting a session and pinning it leaves one
// too many. A pass counts only if no session was placed or ended during it, and
// a difference is repaired only when two such passes in a row agree on it: what
// they saw can then be no placement under way. It returns the number of sessions
// by which counts were off.
func (s *store) reconcile() (repaired uint64) {
	before, ok := s.refresh()
	if !ok || s.view.shards == 0 {
		return 0
	}
	drift := make([]int64, len(s.view.List))
	for i := range s.view.List {
		drift[i] = -int64(s.view.List[i].Open)
	}
	for i := range s.view.shards {
		sh, _, ok := s.readShard(i)
		if !ok {
			return 0
		}
		for at := range sh.len() {
			if r := s.view.Index(sh.pin(at).Replica); r >= 0 {
				drift[r]++
			}
		}
		s.data.forget()
	}
	if after, ok := s.refresh(); !ok || after != before {
		return 0
	}
	suspected := s.drift
	s.drift = drift
	for i := range drift {
		if len(suspected) != len(drift) || suspected[i] != drift[i] {
			return 0
		}
		s.view.List[i].Open = uint32(int64(s.view.List[i].Open) + drift[i])
		repaired += uint64(max(drift[i], -drift[i]))
	}
	if repaired == 0 || s.writeRecord(before) != written {
		return 0
	}
	s.drift = nil
	s.stats.repaired += repaired
	return repaired
}

// suspects reports whether the last pass found a difference that the next one
// has to confirm.
func (s *store) suspects() bool {
	for _, d := range s.drift {
		if d != 0 {
			return true
		}
	}
	return false
}
