package policy

// Follows reports whether a session pinned to one replica goes on at another that
// answered a turn of it, after a retry: only when the pinned one cannot keep its
// sessions at now and the other can, and takes new ones. What is cached of the
// session is there then; placing it anew would cost a third replica its prefill.
// pinned and served are ids. Cost: O(replicas). Pure.
func (r *Replicas) Follows(pinned, served uint32, now int64) bool {
	i := r.Index(served)
	return pinned != served && i >= 0 && r.List[i].places(now, r.Panicking(now)) &&
		!r.serves(pinned, now) && r.serves(served, now)
}

// serves reports whether sessions pinned to the replica with that id stay on it.
func (r *Replicas) serves(id uint32, now int64) bool {
	i := r.Index(id)
	return i >= 0 && r.List[i].keeps(now, r.Panicking(now))
}
