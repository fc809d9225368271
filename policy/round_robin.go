package policy

// RoundRobin sends requests to the replicas in turn, past those that may not take
// any. Nothing is pinned. Weights do not count. Cost: O(replicas).
type RoundRobin struct{}

// Pins is false.
func (RoundRobin) Pins() bool { return false }

// Unpinned is Choose.
func (p RoundRobin) Unpinned(r *Replicas, q Query) int { return p.Choose(r, q) }

// Choose returns the replica that was chosen longest ago.
func (RoundRobin) Choose(r *Replicas, q Query) int {
	panicking := r.Panicking(q.Now)
	best := -1
	for i := range r.List {
		if r.List[i].places(q.Now, panicking) && (best < 0 || q.sooner(i, best)) {
			best = i
		}
	}
	return best
}
