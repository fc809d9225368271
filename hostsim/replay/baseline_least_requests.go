package replay

// leastRequests gives each request to the replica that has the fewest of this router's; among equals to the next one after
// the last chosen.
type leastRequests struct {
	requests []int // by replica
	next     int
}

func (l *leastRequests) choose(_ *Turn, members []int) int {
	for len(l.requests) <= members[len(members)-1] {
		l.requests = append(l.requests, 0)
	}
	at := l.next % len(members)
	for k := range members {
		if i := (l.next + k) % len(members); l.requests[members[i]] < l.requests[members[at]] {
			at = i
		}
	}
	l.next = at + 1
	l.requests[members[at]]++
	return members[at]
}

func (l *leastRequests) done(replica int) { l.requests[replica]-- }
