package policy

import (
	"errors"
	"math"
)

// HealthRule says when a replica that fails is left alone, and for how long.
type HealthRule struct {
	// Failures is the number of failures in a row that begin a cool-down,
	// 1..65534; 0 means that none begins.
	Failures uint16
	// Cooldown is the length of the first cool-down in ms, above 0. Each
	// failed trial doubles it up to MaxCooldown, which is not below Cooldown.
	Cooldown, MaxCooldown int64
}

// ErrHealthRule means that a HealthRule is out of its ranges.
var ErrHealthRule = errors.New("policy: bad health rule")

// Validate checks the ranges. Errors: ErrHealthRule.
func (h HealthRule) Validate() error {
	if h.Failures > unproven || h.Failures > 0 && (h.Cooldown <= 0 || h.MaxCooldown < h.Cooldown) {
		return ErrHealthRule
	}
	return nil
}

// Health is what a replica's answers said of it; zero is well. Times are in
// milliseconds of the caller's clock.
//
// A replica is well, or it cools down from Since to Until; then one session may
// be placed on it, as its trial. Placing it moves Until on, so that there is no
// second trial beside it, and another one if nothing is ever heard of it.
// A success ends the cool-down, a failed trial begins one twice as long.
type Health struct {
	// Failures counts failures in a row while the replica is well; it is 65534
	// after a cool-down that ended unproven.
	Failures uint16
	// Probing says that a trial was placed since Since.
	Probing bool
	// Cooldown is the length of the present cool-down in ms; 0 means well.
	Cooldown int64
	// Since is when the cool-down began, Until when a trial may begin.
	Since, Until int64
}

// Well reports that no failure is on record: what else it says means nothing then.
func (h *Health) Well() bool { return h.Failures == 0 && h.Cooldown == 0 }

// Cooling reports whether the replica is left alone.
func (h *Health) Cooling() bool { return h.Cooldown > 0 }

// ripe reports whether a cool-down is over and the trial is still to come.
func (h *Health) ripe(now int64) bool { return h.Cooldown > 0 && now >= h.Until }

// Fail records that a turn failed on the replica with that id: the connection
// was refused or reset, or the status is one that configuration names. began is
// when the turn was sent there. It reports whether anything changed.
//
// What began before the cool-down says nothing new, and neither does traffic
// that comes before the trial because there is no other replica: both are
// ignored, so that one outage doubles the cool-down once a trial.
// Cost: O(log n). Concurrency: as for every change of Replicas, by
// compare-and-swap of the whole.
func (r *Replicas) Fail(id uint32, began, now int64, rule HealthRule) (changed bool) {
	i := r.Index(id)
	if i < 0 || r.List[i].State == Removed || rule.Failures == 0 {
		return false
	}
	h := &r.List[i].Health
	if h.Cooling() {
		if began >= h.Until || h.Probing && began > h.Since {
			h.cool(now, rule)
			return true
		}
		return false
	}
	if h.Failures++; h.Failures >= rule.Failures {
		h.cool(now, rule)
	}
	return true
}

// cool begins a cool-down: the first, or one twice as long as the last.
func (h *Health) cool(now int64, rule HealthRule) {
	next := rule.Cooldown
	if h.Cooldown > 0 {
		next = rule.MaxCooldown
		if h.Cooldown < rule.MaxCooldown/2 {
			next = 2 * h.Cooldown
		}
	}
	next = max(next, 1)
	*h = Health{Cooldown: next, Since: now, Until: now + next}
}

// unproven is Health.Failures of a replica whose cool-down ended without a
// success of its own: the next failure begins another.
const unproven = math.MaxUint16 - 1

// Succeed records that a turn succeeded on the replica with that id, began being
// when it was sent there. A turn that began before a cool-down does not end it. It
// reports whether anything changed; on a replica that is well, nothing does.
//
// If all were cooling down, whether or not their trials are due, what failed them
// was most likely none of them but the network: the first success ends every
// cool-down. Else the replica that answers first would be the only eligible one,
// and every session would move to it. Those that were not heard of cool down
// again at their next failure.
func (r *Replicas) Succeed(id uint32, began int64) (changed bool) {
	i := r.Index(id)
	if i < 0 || r.List[i].State == Removed {
		return false
	}
	h := &r.List[i].Health
	switch {
	case *h == (Health{}):
		return false
	case !h.Cooling():
		*h = Health{}
	case began <= h.Since:
		return false
	case r.noneWell():
		for j := range r.List {
			if o := &r.List[j]; o.Health.Cooling() {
				o.Health = Health{Failures: unproven}
			}
		}
		*h = Health{}
	default:
		*h = Health{}
		if r.List[i].state() == Active {
			r.rejoin(i)
		}
	}
	return true
}

// noneWell reports that every replica that would take sessions cools down.
func (r *Replicas) noneWell() bool {
	for i := range r.List {
		if c := &r.List[i]; c.state() == Active && !c.Health.Cooling() {
			return false
		}
	}
	return true
}

// Probe marks the session or request that was chosen at now for the replica at
// position i as its trial, if its cool-down is over, and reports whether it did:
// the change must then be recorded before the request is sent, or others would
// send theirs too. Reserve does this itself.
func (r *Replicas) Probe(i int, now int64) bool {
	h := &r.List[i].Health
	if !h.ripe(now) {
		return false
	}
	h.Probing, h.Until = true, now+h.Cooldown
	return true
}

// overdue returns the position of the replica that has waited longest for its
// trial, or -1.
func (r *Replicas) overdue(now int64) int {
	first := -1
	for i := range r.List {
		c := &r.List[i]
		if c.Health.ripe(now) && c.state() == Active && (first < 0 || c.Health.Until < r.List[first].Health.Until) {
			first = i
		}
	}
	return first
}
