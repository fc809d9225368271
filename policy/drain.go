package policy

// Drain begins or ends an operator's drain of the replica with that id, and
// reports whether anything changed. A drained replica is as good as one whose
// Member is Draining: it keeps its sessions and takes no new ones. The drain is
// no part of a Member, so that Apply does not end it; it ends with the replica.
// Cost: O(replicas).
func (r *Replicas) Drain(id uint32, drained bool) (changed bool) {
	i := r.Index(id)
	if i < 0 || r.List[i].State == Removed || r.List[i].Drained == drained {
		return false
	}
	r.List[i].Drained = drained
	if r.List[i].state() == Active {
		r.rejoin(i)
	}
	return true
}
