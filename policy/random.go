package policy

// Random sends each request to a replica drawn uniformly. Nothing is pinned.
// Weights do not count. Cost: O(replicas).
type Random struct{}

// Pins is false.
func (Random) Pins() bool { return false }

// Unpinned is Choose.
func (p Random) Unpinned(r *Replicas, q Query) int { return p.Choose(r, q) }

// Choose returns the replica that q.Random draws.
func (Random) Choose(r *Replicas, q Query) int {
	panicking := r.Panicking(q.Now)
	count := r.placeable(q.Now, panicking)
	if count == 0 {
		return -1
	}
	return r.nth(q.Random%count, q.Now, panicking)
}

// placeable returns the number of replicas that may take a session.
func (r *Replicas) placeable(now int64, panicking bool) (count uint64) {
	for i := range r.List {
		if r.List[i].places(now, panicking) {
			count++
		}
	}
	return count
}

// nth returns the position of the replica with number n, from 0, among those
// that may take a session; -1 if there are no more than n.
func (r *Replicas) nth(n uint64, now int64, panicking bool) int {
	for i := range r.List {
		if !r.List[i].places(now, panicking) {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return -1
}
