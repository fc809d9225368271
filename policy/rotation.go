package policy

// Rotation remembers in which order one caller chose replicas for requests of one
// kind, so that those between which nothing else decides are taken in turn: the
// one chosen longest ago, or never, comes first. A position or a number of
// requests would not do: replicas that come and go in step with the requests shift
// it so that some never have a turn. The zero value has chosen none.
type Rotation struct {
	count  uint64
	last   map[uint32]uint64 // by replica id
	chosen []uint64          // scratch
}

// Of returns Query.Chosen for the replicas, valid until the next call.
// Cost: O(replicas), no allocation while their number does not grow.
func (o *Rotation) Of(r *Replicas) []uint64 {
	o.chosen = o.chosen[:0]
	for i := range r.List {
		o.chosen = append(o.chosen, o.last[r.List[i].ID])
	}
	if len(o.last) > len(r.List) {
		for id := range o.last {
			if r.Index(id) < 0 {
				delete(o.last, id)
			}
		}
	}
	return o.chosen
}

// Chose records that the replica with that id was chosen.
func (o *Rotation) Chose(id uint32) {
	if o.last == nil {
		o.last = make(map[uint32]uint64)
	}
	o.count++
	o.last[id] = o.count
}

// sooner reports whether the replica at position a was chosen before that at b.
func (q *Query) sooner(a, b int) bool { return q.chosen(a) < q.chosen(b) }

func (q *Query) chosen(i int) uint64 {
	if i < len(q.Chosen) {
		return q.Chosen[i]
	}
	return 0
}
