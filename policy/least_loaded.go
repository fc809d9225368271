package policy

// LeastLoaded sends each request to the replica with the fewest running requests
// per weight, the tied in turn: the first of the tied would serve alone whenever
// requests do not overlap (verl-project/verl#7613). Nothing is pinned.
// Cost: O(replicas).
type LeastLoaded struct{}

// Pins is false.
func (LeastLoaded) Pins() bool { return false }

// Unpinned is Choose.
func (p LeastLoaded) Unpinned(r *Replicas, q Query) int { return p.Choose(r, q) }

// Choose returns the replica with the fewest running requests.
func (LeastLoaded) Choose(r *Replicas, q Query) int {
	panicking := r.Panicking(q.Now)
	var t turns
	for i := range r.List {
		c := &r.List[i]
		switch {
		case !c.places(q.Now, panicking):
		case t.none() || lessBusy(r, q.InFlight, i, t.first-1):
			t.restart(i, c.ID, q.After)
		case !lessBusy(r, q.InFlight, t.first-1, i):
			t.tie(i, c.ID, q.After)
		}
	}
	return t.chosen()
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
