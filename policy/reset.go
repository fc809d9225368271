package policy

// Reset forgets at now what requests have taught of the pool, sessions, health and
// placements, and returns the number of sessions that it ended. Members stay,
// with their weights and states, and so do drains: those were ordered.
//
// Pins are stored elsewhere and cannot change in the same step. So a replica that
// has any becomes Removed and Void, its address another replica: pins of before
// count for the void one alone, until their sessions return (Judge) or a sweep
// finds them (Over), and so does a session that is being placed meanwhile. One that
// is Removed goes on as another, too: it may come back (Apply).
// Cost: O(replicas).
func (r *Replicas) Reset(now int64) (ended uint64) {
	for i := range r.List {
		c := &r.List[i]
		fresh := Replica{
			ID: c.ID, Address: c.Address, Rank: c.Rank, Weight: c.Weight, State: c.State,
			Drained: c.Drained, Void: c.Void, RemovedAt: c.RemovedAt,
		}
		if c.Open == 0 {
			*c = fresh
			continue
		}
		if c.Void {
			continue
		}
		ended += uint64(c.Open)
		fresh.ID = r.NextID
		c.State, c.Void, c.Joining, c.RemovedAt = Removed, true, false, now
		r.NextID++
		r.List = append(r.List, fresh)
	}
	r.Placements = 0
	return ended
}

// Void reports whether Reset ended the sessions of the replica with that id.
// Cost: O(log n).
func (r *Replicas) Void(id uint32) bool {
	i := r.Index(id)
	return i >= 0 && r.List[i].Void
}
