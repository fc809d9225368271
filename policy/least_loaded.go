package policy

// LeastLoaded sends each request to the replica with the fewest running requests
// per weight, the tied in turn. Nothing is pinned. Cost: O(replicas).
type LeastLoaded struct{}

// Pins is false.
func (LeastLoaded) Pins() bool { return false }

// Choose returns the replica with the fewest running requests.
func (LeastLoaded) Choose(r *Replicas, q Query) int {
	panicking := r.Panicking()
	least, ties := -1, uint64(0)
	for i := range r.List {
		switch {
		case !places(r.List[i].State, panicking):
		case least < 0 || lessBusy(r, q.InFlight, i, least):
			least, ties = i, 1
		case !lessBusy(r, q.InFlight, least, i):
			ties++
		}
	}
	if least < 0 {
		return -1
	}
	skip := q.Cursor % ties
	for i := least; i < len(r.List); i++ {
		if !places(r.List[i].State, panicking) || lessBusy(r, q.InFlight, least, i) {
			continue
		}
		if skip == 0 {
			return i
		}
		skip--
	}
	return least
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
