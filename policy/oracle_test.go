package policy_test

import (
	"slices"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// oracle says what a pool should do, the slow way: it keeps the list of pins and
// the list of placements, and counts them anew for every question. It shares no
// code with the package, only its names for states and reasons.
type oracle struct {
	rules
	replicas   []oracleReplica // in the order they came
	lastID     uint32
	pins       []oraclePin
	placements []uint32 // replica ids, in order
	running    []uint32 // replica ids, one for each running request
	prompts    map[string]oracleHolders
	random     uint64   // for the next decision
	turns      []uint32 // replica ids of turns that are not pinned, in order
	others     []uint32 // of requests without a pin
}

type oracleReplica struct {
	id      uint32
	member  policy.Member
	rank    uint64
	joining bool
	gone    bool
	left    int64 // when it was gone
	drained bool
	void    bool // gone by reset
	// Health: failures in a row; while it cools (length > 0) from when, and when
	// its trials were.
	failures      int
	since, length int64
	trials        []int64
}

// ready is when the replica may take a trial.
func (c *oracleReplica) ready() int64 {
	at := c.since
	for _, t := range c.trials {
		at = max(at, t)
	}
	return at + c.length
}

// fit reports whether the replica may take a session at now.
func (c *oracleReplica) fit(now int64) bool {
	return c.active() && (c.length == 0 || c.ready() <= now)
}

// active reports whether the replica takes sessions but for its health.
func (c *oracleReplica) active() bool {
	return !c.gone && !c.drained && c.member.State == policy.Active
}

type oraclePin struct {
	session string
	replica uint32
	seen    int64
}

// apply follows the members; the order of the list matters only to new ids.
func (o *oracle) apply(members []policy.Member, now int64) {
	busy := len(o.pins) > 0
	listed := map[string]policy.Member{}
	for _, m := range members {
		listed[m.Address] = m
	}
	present := map[string]bool{}
	var back []int
	for i := len(o.replicas) - 1; i >= 0; i-- {
		c := &o.replicas[i]
		m, ok := listed[c.member.Address]
		if c.gone && (present[c.member.Address] || !ok || c.void || c.left+o.grace <= now) {
			continue
		}
		if !ok {
			c.gone, c.joining, c.left = true, false, now
			continue
		}
		active := c.active()
		c.gone, c.member, present[m.Address] = false, m, true
		if !active && c.active() {
			back = append(back, i)
		}
	}
	for _, m := range members {
		if !present[m.Address] {
			o.lastID++
			o.replicas = append(o.replicas, oracleReplica{id: o.lastID, member: m, rank: policy.RankAddress(m.Address), joining: busy})
		}
	}
	var settled []bool
	for _, i := range back {
		o.replicas[i].joining = true
	}
	for _, i := range back {
		settled = append(settled, o.level(&o.replicas[i]))
	}
	for n, i := range back {
		o.replicas[i].joining = !settled[n]
	}
}

// forget drops what is gone, holds no pin and cannot come back.
func (o *oracle) forget(now int64) {
	var left []oracleReplica
	for _, c := range o.replicas {
		if !c.gone || o.count(c.id) > 0 || !c.void && now < c.left+o.grace {
			left = append(left, c)
		}
	}
	o.replicas = left
}

func (o *oracle) byID(id uint32) *oracleReplica {
	for i := range o.replicas {
		if o.replicas[i].id == id && !o.replicas[i].gone {
			return &o.replicas[i]
		}
	}
	return nil
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
func (o *oracle) eligible(now int64) (list []*oracleReplica) {
	for _, all := range []bool{false, true} {
		for i := range o.replicas {
			if c := &o.replicas[i]; c.fit(now) || all && !c.gone {
				list = append(list, c)
			}
		}
		if len(list) > 0 {
			break
		}
	}
	return list
}

// panics reports that nobody is fit.
func (o *oracle) panics(now int64) bool {
	for i := range o.replicas {
		if o.replicas[i].fit(now) {
			return false
		}
	}
	return true
}

// ago says how many placements back the replica was chosen: 1 for the last, 0
// for never.
func (o *oracle) ago(id uint32) int64 { return ago(o.placements, id) }

func ago(choices []uint32, id uint32) int64 {
	for i := len(choices) - 1; i >= 0; i-- {
		if choices[i] == id {
			return int64(len(choices) - i)
		}
	}
	return 0
}

// load is the replica's open sessions without the one that is about to leave.
func (o *oracle) load(c *oracleReplica, leaving uint32) int64 {
	n := o.count(c.id)
	if c.id == leaving {
		n--
	}
	return n
}

// compare is the order of a/b to c/d.
func compare(a int64, b uint32, c int64, d uint32) int64 { return a*int64(d) - c*int64(b) }

// better orders two replicas for the session: least loaded, longest ago (never is
// longest), highest rendezvous score.
func (o *oracle) better(a, b *oracleReplica, session string, leaving uint32) bool {
	if c := compare(o.load(a, leaving), a.member.Weight, o.load(b, leaving), b.member.Weight); c != 0 {
		return c < 0
	}
	if x, y := o.ago(a.id), o.ago(b.id); x != y {
		return x == 0 || y != 0 && x > y
	}
	return higher(a, b, session)
}

// higher orders two replicas by rendezvous score.
func higher(a, b *oracleReplica, session string) bool {
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

// best returns the replica that better puts first, nil of none.
func best(list []*oracleReplica, better func(a, b *oracleReplica) bool) (first *oracleReplica) {
	for _, c := range list {
		if first == nil || better(c, first) {
			first = c
		}
	}
	return first
}

func where(list []*oracleReplica, keep func(*oracleReplica) bool) (kept []*oracleReplica) {
	for _, c := range list {
		if keep(c) {
			kept = append(kept, c)
		}
	}
	return kept
}

// settle ends c's joining once it is level.
func (o *oracle) settle(c *oracleReplica) { c.joining = c.joining && !o.level(c) }

// level reports that some settled active replica is no more loaded than c, or
// there is none.
func (o *oracle) level(c *oracleReplica) bool {
	others := 0
	for i := range o.replicas {
		e := &o.replicas[i]
		if !e.active() || e.joining || e.length > 0 {
			continue
		}
		others++
		if compare(o.load(e, 0), e.member.Weight, o.load(c, 0), c.member.Weight) <= 0 {
			return true
		}
	}
	return others == 0
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
	if o.byID(p.replica) == nil {
		return policy.FailoverRemoved
	}
	if o.keeps(p.replica, now) {
		return policy.Pinned
	}
	return policy.FailoverUnhealthy
}

// keeps reports that sessions stay on the replica of that id.
func (o *oracle) keeps(id uint32, now int64) bool {
	c := o.byID(id)
	return c != nil && (o.panics(now) || c.active() && c.length == 0 ||
		!c.active() && c.member.State != policy.Unhealthy && (c.length == 0 || c.ready() <= now))
}

// follow moves a session to the replica of that id, if its own keeps none and that
// one does and takes new ones.
func (o *oracle) follow(session string, id uint32, now int64) bool {
	p := o.pinOf(session)
	if p == nil || o.keeps(p.replica, now) || !o.keeps(id, now) || !o.panics(now) && !o.byID(id).active() {
		return false
	}
	c := o.byID(id)
	o.try(c, now)
	o.placements = append(o.placements, id)
	o.pins = append(o.pins, oraclePin{session, id, now})
	o.settle(c)
	o.drop(func(q oraclePin) bool { return q.session != session || q.replica == id })
	return true
}

func (o *oracle) turn(session, prompt string, now int64) policy.Decision {
	if !o.pinning() {
		return o.loose(session, policy.Placed, now, &o.turns)
	}
	old, reason, leaving, panicked := o.pinOf(session), policy.Placed, uint32(0), o.panics(now)
	if old != nil {
		reason, leaving = o.verdict(old, now), old.replica
	}
	if reason == policy.Pinned {
		// The record is coarse: a sixteenth of the timeout.
		if now-old.seen > o.timeout/16 {
			old.seen = now
		}
		return policy.Decision{Replica: old.replica, Reason: reason, Panic: panicked}
	}
	if old == nil && len(o.pins) >= o.capacity && o.sweep(now) == 0 {
		return o.unrecorded(session, policy.TableFull, now)
	}
	c := o.place(session, prompt, leaving, now)
	if c == nil {
		return policy.Decision{Reason: policy.NoReplica}
	}
	// The new place is taken before the old one is given up.
	o.try(c, now)
	o.placements = append(o.placements, c.id)
	o.pins = append(o.pins, oraclePin{session, c.id, now})
	o.settle(c)
	if old != nil {
		i := slices.IndexFunc(o.pins, func(p oraclePin) bool { return p.session == session })
		o.pins = slices.Delete(o.pins, i, i+1)
	}
	o.learn(prompt, c.id)
	return policy.Decision{Replica: c.id, Reason: reason, Panic: panicked}
}

// unrecorded decides a request without a pin; session is empty where there is none.
func (o *oracle) unrecorded(session string, reason policy.Reason, now int64) policy.Decision {
	return o.loose(session, reason, now, &o.others)
}

// loose is a decision of which nothing is recorded but a trial.
func (o *oracle) loose(session string, reason policy.Reason, now int64, before *[]uint32) policy.Decision {
	panicked := o.panics(now)
	var c *oracleReplica
	if all := o.eligible(now); len(all) > 0 {
		c = o.pick(all, session, *before)
	}
	if c == nil {
		return policy.Decision{Reason: policy.NoReplica}
	}
	o.try(c, now)
	*before = append(*before, c.id)
	return policy.Decision{Replica: c.id, Reason: reason, Panic: panicked}
}
