package policy

// Condition is what the replica is to a policy: Cooling while its answers say
// that it fails and its State does not exclude it already, else its State.
func (c *Replica) Condition() State {
	if c.Health.Cooling() && (c.State == Active || c.State == Draining) {
		return Cooling
	}
	return c.State
}

// Panicking reports that no replica may take a session at now. Every member is
// then treated as eligible: a gateway that has just started reports all hosts
// unhealthy for seconds, and a named host beats none.
func (r *Replicas) Panicking(now int64) bool {
	for i := range r.List {
		if r.List[i].places(now, false) {
			return false
		}
	}
	return true
}

// places reports whether the replica may take a new session at now. One whose
// cool-down is over may take one, as its trial.
func (c *Replica) places(now int64, panicking bool) bool {
	if panicking {
		return c.State != Removed
	}
	return c.State == Active && (!c.Health.Cooling() || c.Health.ripe(now))
}

// keeps reports whether the replica still serves its pins at now. Sessions do not
// come back to one that cools down before a trial has shown that it is well;
// one that drains takes no trial, so its own sessions are what tries it.
func (c *Replica) keeps(now int64, panicking bool) bool {
	switch {
	case panicking:
		return c.State != Removed
	case c.State == Draining:
		return !c.Health.Cooling() || c.Health.ripe(now)
	}
	return c.State == Active && !c.Health.Cooling()
}
