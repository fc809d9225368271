package policy

import "slices"

// Slots finds the spares of sessions in a large pool without asking every replica.
//
// Each replica has one slot of a table, a third of which or more stays empty. A
// session draws slots by a pseudo-random sequence of its own; those that are empty,
// or whose replica may not take the session, are skipped (DxHash: Dong and Wang,
// 2021). So a session has the same spares at every turn; any replica follows any
// other for as many sessions, so that those of one that dies spread evenly; and where
// one comes or goes, hardly any sessions change spares but those that get or had it.
//
// A replica finds its slot by its address, whatever the order of the list: two
// gateways agree, as far as their pools have the same members. Pools that grow
// beyond, or shrink below, a size where the table changes its own have other spares.
// The zero value is ready for any pool. Concurrency: one caller at a time.
type Slots struct {
	// table holds positions in the list, counted from 1; 0 is an empty slot.
	table []int32
	// next, count and last tell the list of which it was made: ids are never given
	// twice, and a list without a new one has changed only if it is shorter. last is
	// the rank of the list's last replica, for a record that was lost.
	next  uint32
	count int
	last  uint64
}

const (
	// FewReplicas is the number up to which it is no slower to ask every replica.
	FewReplicas = 16
	// maxDraws bounds the search; where so few may take a session that it ends in
	// vain, every replica is asked.
	maxDraws = 64
	// golden is the step of the sequences, as in SplitMix64.
	golden = 0x9e3779b97f4a7c15
)

// SpareClasses is the number of classes of sessions. Those of a class, which is a hash's
// share of all, have the same spares in a pool of up to FewReplicas, so that whoever
// needs them often may keep them.
const SpareClasses = 256

// SpareClass returns the session's class, 0..SpareClasses-1.
func (k Key) SpareClass() uint8 { return uint8(k.Rank >> 56) }

// Spares is like the function Spares, which it calls for up to FewReplicas: in the
// rendezvous order of the session's class. That of more is the session's own.
// Cost: O(n) where a fair share of the replicas may take sessions; O(replicas) once
// after replicas were added or forgotten, with an allocation where the table grows.
func (s *Slots) Spares(dst []int, r *Replicas, key Key, primary, n int, now int64) []int {
	if len(r.List) <= FewReplicas {
		key.Rank = uint64(key.SpareClass()) << 56
		return Spares(dst, r, key, primary, n, now)
	}
	if s.count != len(r.List) || s.next != r.NextID || s.last != r.List[s.count-1].Rank {
		s.fill(r)
	}
	panicking := r.Panicking(now)
	n = min(n, MaxSpares)
	start, mask := len(dst), uint64(len(s.table)-1)
	at := key.Rank
	for range maxDraws {
		if len(dst)-start >= n {
			return dst
		}
		i := int(s.table[mix(at)&mask]) - 1
		at += golden
		if i >= 0 && i != primary && !slices.Contains(dst[start:], i) && r.List[i].spares(now, panicking) {
			dst = append(dst, i)
		}
	}
	return Spares(dst[:start], r, key, primary, n, now)
}

// fill gives each replica a slot: the first of its own sequence that none of higher
// rank wants. That is a stable matching, and does not depend on the list's order
// (Gale and Shapley, 1962). Of one address a newer replica comes first.
func (s *Slots) fill(r *Replicas) {
	s.next, s.count, s.last = r.NextID, len(r.List), r.List[len(r.List)-1].Rank
	size := 1
	for size < s.count+s.count/2 {
		size *= 2
	}
	if size > cap(s.table) {
		s.table = make([]int32, size)
	}
	s.table = s.table[:size]
	clear(s.table)
	for i := range r.List {
		seeker := int32(i)
		at := r.List[seeker].Rank
		for {
			slot := &s.table[mix(at)&uint64(size-1)]
			at += golden
			if *slot == 0 {
				*slot = seeker + 1
				break
			}
			if holder := *slot - 1; r.List[holder].Rank < r.List[seeker].Rank ||
				r.List[holder].Rank == r.List[seeker].Rank && holder < seeker {
				*slot, seeker = seeker+1, holder
				at = r.List[seeker].Rank
			}
		}
	}
}
