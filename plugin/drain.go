package plugin

import "github.com/pinwheel-proxy/pinwheel/policy"

// drain begins or ends the drain of the member with that address, and returns its
// id, 0 if there is no such member. It is false if the record could not be written.
// A reset of another worker may give the member another id meanwhile.
func (s *store) drain(address string, drained bool) (id uint32, ok bool) {
	ok = s.change(func(r *policy.Replicas) bool {
		id = s.member(address)
		return r.Drain(id, drained)
	})
	return id, ok
}

// reset ends all sessions. It is false if the record could not be written. Other
// workers learn of it when they read the record, at their next tick at the latest;
// until then a session that they know goes on as before, and counts for nothing.
func (s *store) reset(now int64) (ended uint64, ok bool) {
	ok = s.change(func(r *policy.Replicas) bool {
		ended = r.Reset(now)
		return true
	})
	return ended, ok
}
