package policy

// MaxSpares bounds the list of fallback hosts of one request.
const MaxSpares = 8

// Spares appends to dst the positions of up to n replicas to try, in order, when
// the one at position primary cannot be reached: those that may take sessions at
// now, in the session's rendezvous order. One that still has to show that it is
// well is no spare. n is 0..MaxSpares; fewer are returned if the pool has fewer.
// Cost: O(replicas * n), no allocation beyond dst; see Slots for large pools. Pure.
func Spares(dst []int, r *Replicas, key Key, primary, n int, now int64) []int {
	panicking := r.Panicking(now)
	n = min(n, MaxSpares)
	start := len(dst)
	var scores [MaxSpares]uint64
	for i := range r.List {
		c := &r.List[i]
		if i == primary || !c.Plain() && !c.spares(now, panicking) {
			continue
		}
		s := score(key.Rank, c.Rank)
		at := len(dst) - start
		for at > 0 && scores[at-1] < s {
			at--
		}
		if at >= n {
			continue
		}
		if len(dst)-start < n {
			dst = append(dst, 0)
		}
		// One by one: there is next to nothing to move.
		for to := len(dst) - start - 1; to > at; to-- {
			dst[start+to], scores[to] = dst[start+to-1], scores[to-1]
		}
		dst[start+at], scores[at] = i, s
	}
	return dst
}
