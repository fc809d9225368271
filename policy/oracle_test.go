package policy_test

import (
	"math/big"
	"slices"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// oracle says what a pool should do, the slow way: it keeps the list of pins and
// the list of placements, and counts them anew for every question. It shares no
// code with the package, only its names for states and reasons.
type oracle struct {
	timeout    int64
	capacity   int
	replicas   []oracleReplica // in the order they came
	lastID     uint32
	pins       []oraclePin
	placements []uint32 // replica ids, in order
	unpinned   int
}

type oracleReplica struct {
	id      uint32
	member  policy.Member
	rank    uint64
	joining bool
	gone    bool
}

type oraclePin struct {
	session string
	replica uint32
	seen    int64
}

// apply follows the members; the order of the list matters only to new ids.
func (o *oracle) apply(members []policy.Member) {
	busy := len(o.pins) > 0
	listed := map[string]policy.Member{}
	for _, m := range members {
		listed[m.Address] = m
	}
	present := map[string]bool{}
	for i := range o.replicas {
		c := &o.replicas[i]
		if c.gone {
			continue
		}
		m, ok := listed[c.member.Address]
		if !ok {
			c.gone, c.joining = true, false
			continue
		}
		c.member, present[m.Address] = m, true
	}
	for _, m := range members {
		if !present[m.Address] {
			o.lastID++
			o.replicas = append(o.replicas, oracleReplica{o.lastID, m, policy.RankAddress(m.Address), busy, false})
		}
	}
}

// forget drops what is gone and holds no pin.
func (o *oracle) forget() {
	var left []oracleReplica
	for _, c := range o.replicas {
		if !c.gone || o.count(c.id) > 0 {
			left = append(left, c)
		}
	}
	o.replicas = left
}

func (o *oracle) count(id uint32) (n int64) {
	for _, p := range o.pins {
		if p.replica == id {
			n++
		}
	}
	return n
}

// eligible lists the replicas that may take a session.
func (o *oracle) eligible() (list []*oracleReplica) {
	for i := range o.replicas {
		if c := &o.replicas[i]; !c.gone && c.member.State == policy.Active {
			list = append(list, c)
		}
	}
	for i := range o.replicas {
		if c := &o.replicas[i]; !c.gone && c.member.State != policy.Active && !o.someoneActive() {
			list = append(list, c)
		}
	}
	return list
}

func (o *oracle) someoneActive() bool {
	for _, c := range o.replicas {
		if !c.gone && c.member.State == policy.Active {
			return true
		}
	}
	return false
}

// ago says how many placements back the replica was chosen: 1 for the last, 0
// for never.
func (o *oracle) ago(id uint32) int64 {
	for i := len(o.placements) - 1; i >= 0; i-- {
		if o.placements[i] == id {
			return int64(len(o.placements) - i)
		}
	}
	return 0
}

// load is open sessions per weight without the session that is about to leave.
func (o *oracle) load(c *oracleReplica, leaving uint32) *big.Rat {
	n := o.count(c.id)
	if c.id == leaving {
		n--
	}
	return big.NewRat(n, int64(c.member.Weight))
}

// better orders two replicas for the session: least loaded, longest ago (never is
// longest), highest rendezvous score.
func (o *oracle) better(a, b *oracleReplica, session string, leaving uint32) bool {
	if c := o.load(a, leaving).Cmp(o.load(b, leaving)); c != 0 {
		return c < 0
	}
	if x, y := o.ago(a.id), o.ago(b.id); x != y {
		return x == 0 || y != 0 && x > y
	}
	rank := key(session).Rank
	if x, y := mixed(rank, a.rank), mixed(rank, b.rank); x != y {
		return x > y
	}
	return a.id < b.id
}

// mixed is SplitMix64's finalizer over the two ranks, halves of the second
// exchanged.
func mixed(session, replica uint64) uint64 {
	z := session ^ (replica>>32 + replica<<32)
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	z ^= z >> 31
	return z
}

// fair reports whether c, if it joins, may have one more placement: not more
// than two in every total/weight.
func (o *oracle) fair(c *oracleReplica, among []*oracleReplica) bool {
	total := int64(0)
	for _, e := range among {
		total += int64(e.member.Weight)
	}
	ago := o.ago(c.id)
	return !c.joining || ago == 0 || big.NewRat(2*ago, 1).Cmp(big.NewRat(total, int64(c.member.Weight))) >= 0
}

func (o *oracle) place(session string, leaving uint32) *oracleReplica {
	all := o.eligible()
	var fair []*oracleReplica
	for _, c := range all {
		if o.fair(c, all) {
			fair = append(fair, c)
		}
	}
	if len(fair) == 0 {
		fair = all
	}
	var best *oracleReplica
	for _, c := range fair {
		if best == nil || o.better(c, best, session, leaving) {
			best = c
		}
	}
	return best
}

// settle ends c's joining once some settled active replica is no more loaded, or
// there is none.
func (o *oracle) settle(c *oracleReplica) {
	others := 0
	for i := range o.replicas {
		e := &o.replicas[i]
		if e.gone || e.joining || e.member.State != policy.Active {
			continue
		}
		others++
		if o.load(e, 0).Cmp(o.load(c, 0)) <= 0 {
			c.joining = false
		}
	}
	if others == 0 {
		c.joining = false
	}
}

func (o *oracle) pinOf(session string) *oraclePin {
	for i := range o.pins {
		if o.pins[i].session == session {
			return &o.pins[i]
		}
	}
	return nil
}

func (o *oracle) drop(keep func(oraclePin) bool) (dropped int) {
	var left []oraclePin
	for _, p := range o.pins {
		if keep(p) {
			left = append(left, p)
		}
	}
	dropped = len(o.pins) - len(left)
	o.pins = left
	return dropped
}

func (o *oracle) sweep(now int64) int {
	return o.drop(func(p oraclePin) bool { return now < p.seen+o.timeout })
}

func (o *oracle) finish(session string) bool {
	return o.drop(func(p oraclePin) bool { return p.session != session }) == 1
}

// verdict is the reason for which a pinned session's turn goes where it goes.
func (o *oracle) verdict(p *oraclePin, now int64) policy.Reason {
	if now >= p.seen+o.timeout {
		return policy.Expired
	}
	for _, c := range o.replicas {
		if c.id != p.replica || c.gone {
			continue
		}
		if c.member.State == policy.Unhealthy && o.someoneActive() {
			return policy.FailoverUnhealthy
		}
		return policy.Pinned
	}
	return policy.FailoverRemoved
}

func (o *oracle) turn(session string, now int64) policy.Decision {
	old, reason, leaving := o.pinOf(session), policy.Placed, uint32(0)
	if old != nil {
		reason, leaving = o.verdict(old, now), old.replica
	}
	if reason == policy.Pinned {
		// The record is coarse: a sixteenth of the timeout.
		if now-old.seen > o.timeout/16 {
			old.seen = now
		}
		return policy.Decision{Replica: old.replica, Reason: reason}
	}
	if old == nil && len(o.pins) >= o.capacity && o.sweep(now) == 0 {
		return o.unrecorded(policy.TableFull)
	}
	c := o.place(session, leaving)
	if c == nil {
		return policy.Decision{Reason: policy.NoReplica}
	}
	// The new place is taken before the old one is given up.
	o.placements = append(o.placements, c.id)
	o.pins = append(o.pins, oraclePin{session, c.id, now})
	o.settle(c)
	if old != nil {
		i := slices.IndexFunc(o.pins, func(p oraclePin) bool { return p.session == session })
		o.pins = slices.Delete(o.pins, i, i+1)
	}
	return policy.Decision{Replica: c.id, Reason: reason}
}

func (o *oracle) unrecorded(reason policy.Reason) policy.Decision {
	all := o.eligible()
	var least []*oracleReplica
	for _, c := range all {
		isLeast := true
		for _, e := range all {
			isLeast = isLeast && o.load(c, 0).Cmp(o.load(e, 0)) <= 0
		}
		if isLeast {
			least = append(least, c)
		}
	}
	if len(least) == 0 {
		return policy.Decision{Reason: policy.NoReplica}
	}
	c := least[o.unpinned%len(least)]
	o.unpinned++
	return policy.Decision{Replica: c.id, Reason: reason}
}
