package plugin

import (
	"slices"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// sweepShard takes the pins out of shard i that are over and returns their number.
// A shard that another worker changes meanwhile is left for next time.
func (s *store) sweepShard(i uint32, now int64) (over int) {
	sh, cas, ok := s.readShard(i)
	if !ok {
		return 0
	}
	var gone []uint32
	expired := uint64(0)
	s.buf = append(s.buf[:0], schemaVersion)
	for at := range sh.len() {
		pin := sh.pin(at)
		if policy.Over(pin, &s.view.Replicas, now, s.timeout) {
			gone = append(gone, pin.Replica)
			if !s.view.Void(pin.Replica) {
				expired++
			}
			continue
		}
		s.buf = append(s.buf, sh.bytes(at)...) // as it is: it may be in doubt
	}
	if len(gone) == 0 || s.write(s.shards.of(i), cas) != written {
		return 0
	}
	s.stats.expired += expired
	over = len(gone)
	slices.Sort(gone)
	for len(gone) > 0 { // those of one replica in one write
		n := 1
		for n < len(gone) && gone[n] == gone[0] {
			n++
		}
		s.giveBack(gone[0], uint32(n))
		gone = gone[n:]
	}
	return over
}

// sweepNext sweeps the next shard in turn.
func (s *store) sweepNext(now int64) (over int) {
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
		s.data.Forget()
	}
}

// A full table is swept by the turns that find it full: each at most roomShards,
// some 100 us, and after one that found nothing none for roomPause. Ticks sweep
// the rest.
const (
	roomShards = 64
	roomPause  = 10 // ms
)

// makeRoom sweeps until a pin is found that is over, and returns the number that
// were.
func (s *store) makeRoom(now int64) (over int) {
	if now-s.noRoom < roomPause {
		return 0
	}
	for i := uint32(0); i < min(roomShards, s.view.shards) && over == 0; i++ {
		over = s.sweepNext(now)
	}
	if over == 0 {
		s.noRoom = now
	}
	return over
}

// suspicion is what a pass over all pins found: by how many sessions each count
// differs, and the pool's record at that time.
type suspicion struct {
	drift []int64 // pins less count, by position in the record
	cas   uint32
	// passes is how many passes in a row have found this drift.
	passes int
}

func (s *suspicion) any() bool {
	return slices.ContainsFunc(s.drift, func(d int64) bool { return d != 0 })
}

// surePasses is how many passes in a row must find the same drift in a pool whose
// counts change all the time.
const surePasses = 5

// reconcile compares the pool's counts with its pins and repairs those that
// differ: a VM that died between counting a session and pinning it leaves one
// too many. What looks so may also be a placement under way, so a pass counts
// only if no count changed during it, and a drift is repaired only when the next
// pass, a tick later, finds the same in the same record, or surePasses passes
// find it in changing ones. It returns the number of sessions by which counts
// were off.
func (s *store) reconcile() (repaired uint64) {
	found, ok := s.audit()
	if !ok {
		return 0
	}
	before := s.suspicion
	s.suspicion = found
	if !found.any() || !slices.Equal(found.drift, before.drift) {
		return 0
	}
	s.suspicion.passes = before.passes + 1
	if found.cas != before.cas && s.suspicion.passes < surePasses {
		return 0
	}
	for i, d := range found.drift {
		s.view.List[i].Open = uint32(int64(s.view.List[i].Open) + d)
		repaired += uint64(max(d, -d))
	}
	s.suspicion = suspicion{}
	if s.writeRecord(found.cas) != written {
		return 0
	}
	s.stats.repaired += repaired
	return repaired
}

// audit counts the pins of each replica. It is false if a count changed
// meanwhile.
func (s *store) audit() (found suspicion, ok bool) {
	cas, ok := s.refresh()
	if !ok || s.view.shards == 0 {
		return found, false
	}
	drift := make([]int64, len(s.view.List))
	for i := range s.view.List {
		drift[i] = -int64(s.view.List[i].Open)
	}
	for i := range s.view.shards {
		sh, _, ok := s.readShard(i)
		if !ok {
			return found, false
		}
		for at := range sh.len() {
			if r := s.view.Index(sh.pin(at).Replica); r >= 0 {
				drift[r]++
			}
		}
		s.data.Forget()
	}
	after, ok := s.refresh()
	return suspicion{drift: drift, cas: cas, passes: 1}, ok && after == cas
}
