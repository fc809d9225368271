package policy

// Follows reports whether a session pinned to one replica goes on at another that
// answered a turn of it, after a retry: only when the pinned one cannot keep its
// sessions at now and the other is one that Spares would name. What is cached of the
// session is there then; placing it anew would cost a third replica its prefill.
// pinned and served are ids. Cost: O(replicas). Pure.
func (r *Replicas) Follows(pinned, served uint32, now int64) bool {
	from, to := r.Index(pinned), r.Index(served)
	if pinned == served || to < 0 {
		return false
	}
	panicking := r.Panicking(now)
	return r.List[to].spares(now, panicking) && (from < 0 || !r.List[from].keeps(now, panicking))
}
