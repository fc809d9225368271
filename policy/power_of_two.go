package policy

// PowerOfTwo draws two distinct replicas and sends the request to the one with
// fewer running requests per weight, to the first drawn if they are equal
// (Mitzenmacher, 2001). Nothing is pinned. Cost: O(replicas).
type PowerOfTwo struct{}

// Pins is false.
func (PowerOfTwo) Pins() bool { return false }

// Unpinned is Choose.
func (p PowerOfTwo) Unpinned(r *Replicas, q Query) int { return p.Choose(r, q) }

// Choose returns the less busy of two replicas that q.Random draws: its upper
// half the first, its lower half another.
func (PowerOfTwo) Choose(r *Replicas, q Query) int {
	panicking := r.Panicking(q.Now)
	count := r.placeable(q.Now, panicking)
	if count < 2 {
		return r.nth(0, q.Now, panicking)
	}
	first := q.Random >> 32 % count
	other := (first + 1 + q.Random&0xffffffff%(count-1)) % count
	a, b := r.nth(first, q.Now, panicking), r.nth(other, q.Now, panicking)
	if lessBusy(r, q.InFlight, b, a) {
		return b
	}
	return a
}
