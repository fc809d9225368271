package policy_test

// drain takes the replica out of placement, or back in.
func (o *oracle) drain(id uint32, drained bool) {
	c := o.byID(id)
	if c == nil || c.drained == drained {
		return
	}
	if c.drained = drained; c.active() {
		c.joining = true
		o.settle(c)
	}
}

// reset leaves a pool in which nothing has happened, but for who is drained; what
// had sessions goes, and its like comes.
func (o *oracle) reset(now int64) (ended uint64) {
	ended = uint64(len(o.pins))
	for i := range o.replicas {
		c := o.replicas[i]
		fresh := oracleReplica{id: c.id, member: c.member, rank: c.rank, gone: c.gone, left: c.left, drained: c.drained, void: c.void}
		if o.count(c.id) == 0 {
			o.replicas[i] = fresh
			continue
		}
		o.lastID++
		fresh.id = o.lastID
		o.replicas = append(o.replicas, fresh)
		o.replicas[i].gone, o.replicas[i].void, o.replicas[i].joining, o.replicas[i].left = true, true, false, now
	}
	o.pins, o.placements = nil, nil
	return ended
}
