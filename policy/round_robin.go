package policy

// RoundRobin sends requests to the replicas in turn, past those that may not take
// any. Nothing is pinned. Weights do not count. Cost: O(replicas).
type RoundRobin struct{}

// Pins is false.
func (RoundRobin) Pins() bool { return false }

// Choose returns the replica whose turn it is by q.Cursor.
func (RoundRobin) Choose(r *Replicas, q Query) int { return nthPlaceable(r, q.Cursor) }

// nthPlaceable returns the position of the replica with number n, counted around,
// among those that may take a session; -1 if there is none.
func nthPlaceable(r *Replicas, n uint64) int {
	panicking := r.Panicking()
	var count uint64
	for i := range r.List {
		if places(r.List[i].State, panicking) {
			count++
		}
	}
	if count == 0 {
		return -1
	}
	n %= count
	for i := range r.List {
		if places(r.List[i].State, panicking) {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return -1
}
