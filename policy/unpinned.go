package policy

// fewestOpen names a replica for a request that gets no pin under a policy that
// pins: one of those with the fewest open sessions per weight, the tied in turn.
// Such requests neither disturb the placement of sessions nor follow it, and
// they never share a key: all requests without one would otherwise meet on one
// replica (vllm-project/vime#98).
func fewestOpen(r *Replicas, q Query) int {
	panicking := r.Panicking(q.Now)
	var t turns
	for i := range r.List {
		c := &r.List[i]
		switch {
		case !c.places(q.Now, panicking):
		case t.none() || lessLoaded(c, &r.List[t.first-1], 0):
			t.restart(i, c.ID, q.After)
		case !lessLoaded(&r.List[t.first-1], c, 0):
			t.tie(i, c.ID, q.After)
		}
	}
	return t.chosen()
}

// turns finds, among candidates that come in ascending order of id, the one
// whose turn it is: the first after the id that was chosen last, else the first.
// Positions are kept plus one, so that zero is none.
type turns struct{ first, next int }

func (t *turns) none() bool { return t.first == 0 }

// restart drops all candidates for a better one.
func (t *turns) restart(i int, id, after uint32) {
	*t = turns{first: i + 1}
	t.tie(i, id, after)
}

// tie adds a candidate.
func (t *turns) tie(i int, id, after uint32) {
	if t.first == 0 {
		t.first = i + 1
	}
	if t.next == 0 && id > after {
		t.next = i + 1
	}
}

// chosen returns the position, -1 if there was no candidate.
func (t *turns) chosen() int {
	if t.next > 0 {
		return t.next - 1
	}
	return t.first - 1
}
