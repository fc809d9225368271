package policy

// StickyLeastLoaded places a session on the replica with the fewest open
// sessions per weight. Ties go to the replica chosen least recently (picking the
// first of the tied was measured at 10.6x spread against 1.24x,
// pytorch/torchtitan#4109), then to rendezvous order, so that the first sessions
// of a pool do not all begin with the first replica of the list.
//
// A joining replica is passed over while it would get more than twice its fair
// share of placements: an empty newcomer would otherwise take every new session,
// and all their prefills, until it had caught up.
//
// A replica whose cool-down is over gets the next session as its trial, however
// many it has: until it has shown that it is well its own sessions keep leaving.
//
// Cost: O(replicas). Source: sticky_least_loaded of vllm-project/router#235; the
// tie rule, the limit for newcomers and trials are ours.
type StickyLeastLoaded struct{}

// Pins is true.
func (StickyLeastLoaded) Pins() bool { return true }

// Unpinned returns one of the replicas with the fewest open sessions.
func (StickyLeastLoaded) Unpinned(r *Replicas, q Query) int { return fewestOpen(r, q) }

// Choose returns the replica for a new session, or one that leaves q.Leaving.
func (StickyLeastLoaded) Choose(r *Replicas, q Query) int {
	if i := r.overdue(q.Now); i >= 0 {
		return i
	}
	panicking := r.Panicking(q.Now)
	if best := r.leastLoaded(&q, panicking, true); best >= 0 {
		return best
	}
	return r.leastLoaded(&q, panicking, false)
}

func (r *Replicas) leastLoaded(q *Query, panicking, limitJoining bool) int {
	var weights uint64 // summed for the first that joins
	best := -1
	for i := range r.List {
		c := &r.List[i]
		if !c.places(q.Now, panicking) {
			continue
		}
		if limitJoining && c.Joining {
			if weights == 0 {
				weights = r.placeableWeight(q.Now, panicking)
			}
			if r.overFairShare(c, weights) {
				continue
			}
		}
		if best >= 0 {
			// Most have more: that is told here, without a call for each.
			b := &r.List[best]
			if load(c, q.Leaving)*uint64(b.Weight) > load(b, q.Leaving)*uint64(c.Weight) || !before(c, b, q) {
				continue
			}
		}
		best = i
	}
	return best
}

func (r *Replicas) placeableWeight(now int64, panicking bool) (sum uint64) {
	for i := range r.List {
		if r.List[i].places(now, panicking) {
			sum += uint64(r.List[i].Weight)
		}
	}
	return sum
}

// overFairShare reports whether one more placement now would give c more than
// two of every weights/c.Weight placements.
func (r *Replicas) overFairShare(c *Replica, weights uint64) bool {
	since := r.Placements - c.LastChosen + 1
	return c.LastChosen > 0 && 2*since*uint64(c.Weight) < weights
}

// before is the total order of placement: load, then least recently chosen, then
// rendezvous, then id.
func before(a, b *Replica, q *Query) bool {
	if la, lb := load(a, q.Leaving)*uint64(b.Weight), load(b, q.Leaving)*uint64(a.Weight); la != lb {
		return la < lb
	}
	if a.LastChosen != b.LastChosen {
		return a.LastChosen < b.LastChosen
	}
	if sa, sb := score(q.Key.Rank, a.Rank), score(q.Key.Rank, b.Rank); sa != sb {
		return sa > sb
	}
	return a.ID < b.ID
}
