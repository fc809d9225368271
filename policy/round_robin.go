package policy

// RoundRobin sends requests to the replicas in turn, past those that may not take
// any. Nothing is pinned. Weights do not count. Cost: O(replicas).
type RoundRobin struct{}

// Pins is false.
func (RoundRobin) Pins() bool { return false }

// Unpinned is Choose.
func (p RoundRobin) Unpinned(r *Replicas, q Query) int { return p.Choose(r, q) }

// Choose returns the replica that comes after q.After.
func (RoundRobin) Choose(r *Replicas, q Query) int {
	panicking := r.Panicking(q.Now)
	var t turns
	for i := range r.List {
		if c := &r.List[i]; c.places(q.Now, panicking) {
			t.tie(i, c.ID, q.After)
		}
	}
	return t.chosen()
}
