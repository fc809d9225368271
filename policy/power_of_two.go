package policy

// PowerOfTwo draws two distinct replicas and sends the request to the one with
// fewer running requests per weight (Mitzenmacher, 2001). Nothing is pinned.
// Cost: O(replicas).
type PowerOfTwo struct{}

// Pins is false.
func (PowerOfTwo) Pins() bool { return false }

// Choose returns the less busy of two replicas that q.Random draws.
func (PowerOfTwo) Choose(r *Replicas, q Query) int {
	panicking := r.Panicking()
	var count uint64
	for i := range r.List {
		if places(r.List[i].State, panicking) {
			count++
		}
	}
	if count < 2 {
		return nthPlaceable(r, 0)
	}
	n := q.Random >> 32 % count
	other := (n + 1 + q.Random&0xffffffff%(count-1)) % count
	a, b := nthPlaceable(r, n), nthPlaceable(r, other)
	if lessBusy(r, q.InFlight, b, a) {
		return b
	}
	return a
}
