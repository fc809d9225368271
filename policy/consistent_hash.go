package policy

import "math"

// ConsistentHash sends a session to the first replica of its rendezvous order
// that has room. Adding one replica to n moves about 1/(n+1) of the sessions, the
// order of the list moves none, and a replica that cannot serve spreads its
// sessions over all others.
//
// LoadFactor is the bound c of Mirrokni, Thorup and Zadimoghaddam (2018): no
// replica takes a new session beyond c times its fair share of the open ones.
// 1 or more; 0 means no bound, and then every gateway agrees on every session
// without any state, so that nothing is pinned. If all are over the bound, the
// first of the order keeps its session. Cost: O(replicas).
//
// A hash alone places blind, and still moves 1/(n+1) of the sessions when a
// replica comes: with a bound, pins hold them.
//
// Slack is a number of sessions beyond the bound, 0 or more: without any, the first
// sessions of a pool leave their order for the sake of a balance of one or two.
type ConsistentHash struct {
	LoadFactor float64
	Slack      uint32
}

// Pins reports whether there is a bound: the bound moves with the load, so what
// it decided has to be remembered.
func (p ConsistentHash) Pins() bool { return p.LoadFactor > 0 }

// Unpinned returns one of the replicas with the fewest open sessions where there
// is no session, and Choose's where there is: it finds its way without a pin.
func (p ConsistentHash) Unpinned(r *Replicas, q Query) int {
	if q.Key == (Key{}) {
		return fewestOpen(r, q)
	}
	return p.Choose(r, q)
}

// Choose returns the first replica of the session's order that is under the bound.
func (p ConsistentHash) Choose(r *Replicas, q Query) int {
	panicking := r.Panicking(q.Now)
	var open, weights uint64
	for i := range r.List {
		if c := &r.List[i]; c.places(q.Now, panicking) {
			open += load(c, q.Leaving)
			weights += uint64(c.Weight)
		}
	}
	first, best := -1, -1
	for i := range r.List {
		c := &r.List[i]
		if !c.places(q.Now, panicking) {
			continue
		}
		if first < 0 || precedes(c, &r.List[first], q.Key.Rank) {
			first = i
		}
		if p.hasRoom(load(c, q.Leaving), c.Weight, open, weights) && (best < 0 || precedes(c, &r.List[best], q.Key.Rank)) {
			best = i
		}
	}
	if best < 0 {
		return first
	}
	return best
}

func (p ConsistentHash) hasRoom(load uint64, weight uint32, open, weights uint64) bool {
	if p.LoadFactor <= 0 {
		return true
	}
	share := p.LoadFactor * float64(open+1) * float64(weight) / float64(weights)
	return float64(load) < math.Ceil(share)+float64(p.Slack)
}

// precedes reports whether a comes before b in the session's rendezvous order.
// With unequal weights a replica comes first for a share of sessions that is
// proportional to its weight (Schindelhauer and Schomaker, 2005).
func precedes(a, b *Replica, session uint64) bool {
	sa, sb := score(session, a.Rank), score(session, b.Rank)
	if a.Weight != b.Weight {
		if wa, wb := weighted(sa, a.Weight), weighted(sb, b.Weight); wa != wb {
			return wa > wb
		}
	}
	if sa != sb {
		return sa > sb
	}
	return a.ID < b.ID
}

func weighted(score uint64, weight uint32) float64 {
	u := (float64(score>>11) + 0.5) / (1 << 53)
	return -float64(weight) / math.Log(u)
}
