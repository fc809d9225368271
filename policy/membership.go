package policy

// Apply makes the members the pool's membership at now. A replica that stays
// keeps its id, its counts and its drain, whatever its place in the list; one that goes becomes
// Removed; one that comes gets a new id. Applying the same members again changes
// nothing. It reports whether anything changed. Members must have distinct
// addresses.
//
// An address that comes back less than grace ms after it went is the same
// replica, with its id, its sessions and its health: discovery that misses a
// host for one round must not zero what still runs there
// (vllm-project/aibrix#2421). 0 means that no address comes back as what it was.
// Cost: O(replicas + members).
func (r *Replicas) Apply(members []Member, now, grace int64) (changed bool) {
	hadSessions := r.Open() > 0
	at := make(map[string]int, len(r.List))
	for i := range r.List {
		c := &r.List[i]
		if c.State != Removed || grace > 0 && !c.Void && now-c.RemovedAt < grace {
			// The latest of an address has the highest id.
			at[c.Address] = i
		}
	}
	var returned []int
	for _, m := range members {
		i, ok := at[m.Address]
		if !ok {
			r.add(m, hadSessions)
			changed = true
			continue
		}
		delete(at, m.Address)
		c := &r.List[i]
		if c.Weight == m.Weight && c.State == m.State {
			continue
		}
		before := c.state()
		c.Weight, c.State, changed = m.Weight, m.State, true
		if before != Active && c.state() == Active {
			returned = append(returned, i)
		}
	}
	for _, i := range at {
		if c := &r.List[i]; c.State != Removed {
			c.State, c.Joining, c.RemovedAt, changed = Removed, false, now, true
		}
	}
	r.rejoin(returned...)
	return changed
}

func (r *Replicas) add(m Member, joining bool) {
	// Id 0 means "no replica" elsewhere, so ids start at 1.
	r.NextID = max(r.NextID, 1)
	r.List = append(r.List, Replica{
		ID: r.NextID, Address: m.Address, Rank: RankAddress(m.Address),
		Weight: m.Weight, State: m.State, Joining: joining,
	})
	r.NextID++
}

// rejoin marks replicas that take sessions again: those that have fewer than all
// others would get every new session, and its prefill, until they have as many.
func (r *Replicas) rejoin(positions ...int) {
	// None of them is a measure for another: all are marked before any is judged,
	// and all judged before any mark goes.
	for _, i := range positions {
		r.List[i].Joining = true
	}
	level := positions[:0]
	for _, i := range positions {
		if r.caughtUp(i) {
			level = append(level, i)
		}
	}
	for _, i := range level {
		r.List[i].Joining = false
	}
}

// caughtUp reports whether the joining replica at i is as loaded as the least
// loaded of the replicas that are not joining, or there is no such replica.
func (r *Replicas) caughtUp(i int) bool {
	alone := true
	for j := range r.List {
		o := &r.List[j]
		if o.state() != Active || o.Health.Cooling() || o.Joining {
			continue
		}
		if !lessLoaded(&r.List[i], o, 0) {
			return true
		}
		alone = false
	}
	return alone
}

// Forget drops Removed replicas that hold no pin any more and could not come
// back at now as what they were, grace being that of Apply. It reports whether
// there were any. Without it they would stay in List for good: call it now and
// then, where nothing else refers to their ids.
func (r *Replicas) Forget(now, grace int64) bool {
	kept := r.List[:0]
	for _, c := range r.List {
		if c.State != Removed || c.Open > 0 || grace > 0 && !c.Void && now-c.RemovedAt < grace {
			kept = append(kept, c)
		}
	}
	if len(kept) == len(r.List) {
		return false
	}
	r.List = kept
	return true
}
