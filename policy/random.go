package policy

// Random sends each request to a replica drawn uniformly. Nothing is pinned.
// Weights do not count. Cost: O(replicas).
type Random struct{}

// Pins is false.
func (Random) Pins() bool { return false }

// Choose returns the replica that q.Random draws.
func (Random) Choose(r *Replicas, q Query) int { return nthPlaceable(r, q.Random) }
