package policy

// CacheAware places a session where the longest prefix of its prompt is cached.
//
// If the known prefix is more than Threshold of the prompt, the session goes to
// the least loaded of the replicas that hold it, unless that one has more than
// BalanceAbs open sessions per weight above, and more than BalanceRel times, what
// the least loaded replica of the pool has. Else it goes where StickyLeastLoaded
// places it: by load, never by the size of a replica's cache, which would send
// sessions that match nothing to the replica that knows least and not to the one
// that does least (sgl-project/sglang#14532).
//
// Both rules differ from sgl-project/sglang's and vllm-project/router's:
//
//   - The margin is that of the holder against the best, not of the fullest
//     replica against the emptiest: one hot replica would turn affinity off for
//     sessions that have nothing to do with it (NVIDIA-NeMo/Gym#3345).
//   - A prefix that most of the pool holds alike, a shared system prompt, gives
//     no preference: no replica saves more than another, and the longest match
//     alone sends all load to one node (the Mooncake conversation trace put
//     100% on one of ten).
//
// Threshold is 0..1; at 1 no prefix counts. BalanceAbs is in sessions, BalanceRel
// a factor, 0 or more. The usual values are 0.3, 64 and 1.5. Cost: O(replicas).
type CacheAware struct {
	Threshold  float64
	BalanceAbs uint32
	BalanceRel float64
}

// Pins is true.
func (CacheAware) Pins() bool { return true }

// Unpinned returns one of the replicas with the fewest open sessions.
func (CacheAware) Unpinned(r *Replicas, q Query) int { return fewestOpen(r, q) }

// Choose returns the replica for a new session, or one that leaves q.Leaving.
func (p CacheAware) Choose(r *Replicas, q Query) int {
	if q.Prefix.Share > p.Threshold && !q.Prefix.Wide {
		if i := p.holder(r, &q); i >= 0 {
			return i
		}
	}
	return StickyLeastLoaded{}.Choose(r, q)
}

// holder returns the position of the replica that the prefix speaks for, or -1.
func (p CacheAware) holder(r *Replicas, q *Query) int {
	panicking := r.Panicking(q.Now)
	best, least := -1, -1
	eligible, holders := 0, 0
	for i := range r.List {
		c := &r.List[i]
		if !c.places(q.Now, panicking) {
			continue
		}
		eligible++
		if least < 0 || lessLoaded(c, &r.List[least], q.Leaving) {
			least = i
		}
		if !q.Prefix.Holds(c.ID) {
			continue
		}
		holders++
		if best < 0 || before(c, &r.List[best], q) {
			best = i
		}
	}
	// One that is alone is chosen anyway.
	common := 2*holders > eligible
	if best < 0 || common || p.overloaded(&r.List[best], &r.List[least], q.Leaving) {
		return -1
	}
	return best
}

// overloaded compares loads per weight, both sides times both weights, so that
// equal loads are equal however they divide.
func (p CacheAware) overloaded(holder, least *Replica, leaving uint32) bool {
	high := float64(load(holder, leaving) * uint64(least.Weight))
	low := float64(load(least, leaving) * uint64(holder.Weight))
	scale := float64(uint64(holder.Weight) * uint64(least.Weight))
	return high-low > float64(p.BalanceAbs)*scale && high > p.BalanceRel*low
}
