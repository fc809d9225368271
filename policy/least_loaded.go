package policy

// LeastLoaded sends each request to the replica with the fewest running requests
// per weight, of the tied to the one chosen longest ago: the first of the tied
// would serve alone whenever requests do not overlap (verl-project/verl#7613). Nothing is pinned.
// Cost: O(replicas).
type LeastLoaded struct{}

// Pins is false.
func (LeastLoaded) Pins() bool { return false }

// Unpinned is Choose.
func (p LeastLoaded) Unpinned(r *Replicas, q Query) int { return p.Choose(r, q) }

// Choose returns the replica with the fewest running requests.
func (LeastLoaded) Choose(r *Replicas, q Query) int {
	panicking := r.Panicking(q.Now)
	best := -1
	for i := range r.List {
		if !r.List[i].places(q.Now, panicking) {
			continue
		}
		if best < 0 || lessBusy(r, q.InFlight, i, best) || !lessBusy(r, q.InFlight, best, i) && q.sooner(i, best) {
			best = i
		}
	}
	return best
}

// lessBusy compares running requests per weight.
func lessBusy(r *Replicas, inFlight []uint32, a, b int) bool {
	return busy(inFlight, a)*uint64(r.List[b].Weight) < busy(inFlight, b)*uint64(r.List[a].Weight)
}

func busy(inFlight []uint32, i int) uint64 {
	if i < len(inFlight) {
		return uint64(inFlight[i])
	}
	return 0
}
