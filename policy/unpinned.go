package policy

// fewestOpen names a replica for a request that gets no pin under a policy that
// pins: one of those with the fewest open sessions per weight, the tied in turn.
// Such requests neither disturb the placement of sessions nor follow it, and
// they never share a key: all requests without one would otherwise meet on one
// replica (vllm-project/vime#98).
func fewestOpen(r *Replicas, q Query) int {
	panicking := r.Panicking(q.Now)
	best := -1
	for i := range r.List {
		c := &r.List[i]
		if !c.places(q.Now, panicking) {
			continue
		}
		if best < 0 || lessLoaded(c, &r.List[best], 0) || !lessLoaded(&r.List[best], c, 0) && q.sooner(i, best) {
			best = i
		}
	}
	return best
}
