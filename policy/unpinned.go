package policy

// Unpinned names a replica for a request that gets no pin: it has no session id,
// or too long a one, or the table is full. It is one of those with the fewest
// open sessions per weight, the tied in turn. cursor is the caller's own count
// of such requests: they neither disturb the placement of sessions nor follow
// it. It returns the position in r.List, or -1 if the pool has no member.
// Cost: O(replicas), no allocation. Pure.
func Unpinned(r *Replicas, cursor uint64) int {
	panicking := r.Panicking()
	least, ties := -1, uint64(0)
	for i := range r.List {
		switch c := &r.List[i]; {
		case !places(c.State, panicking):
		case least < 0 || lessLoaded(c, &r.List[least], 0):
			least, ties = i, 1
		case !lessLoaded(&r.List[least], c, 0):
			ties++
		}
	}
	if least < 0 {
		return -1
	}
	skip := cursor % ties
	for i := least; i < len(r.List); i++ {
		c := &r.List[i]
		if !places(c.State, panicking) || lessLoaded(&r.List[least], c, 0) {
			continue
		}
		if skip == 0 {
			return i
		}
		skip--
	}
	return least
}
