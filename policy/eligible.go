package policy

// state is State, or Draining where that is Active and the replica is Drained.
// Whatever judges a replica asks here, not for State.
func (c *Replica) state() State {
	if c.Drained && c.State == Active {
		return Draining
	}
	return c.State
}

// Condition is what the replica is to a policy: Cooling while its answers say
// that it fails and it is neither Unhealthy nor Removed, else Draining if it is
// Drained and Active, else its State.
func (c *Replica) Condition() State {
	s := c.state()
	if c.Health.Cooling() && (s == Active || s == Draining) {
		return Cooling
	}
	return s
}

// Panicking reports that no replica may take a session at now. Every member is
// then treated as eligible: a gateway that has just started reports all hosts
// unhealthy for seconds, and a named host beats none.
func (r *Replicas) Panicking(now int64) bool {
	for i := range r.List {
		if c := &r.List[i]; c.Plain() || c.places(now, false) {
			return false
		}
	}
	return true
}

// Calm is that Panicking is false, which the first replica alone can tell nearly always.
// Compilers inline it.
func (r *Replicas) Calm() bool { return len(r.List) > 0 && r.List[0].Plain() }

// places reports whether the replica may take a new session at now. One whose
// cool-down is over may take one, as its trial.
func (c *Replica) places(now int64, panicking bool) bool {
	if panicking {
		return c.State != Removed
	}
	return c.state() == Active && (!c.Health.Cooling() || c.Health.ripe(now))
}

// spares reports whether the replica may take another's session at now without a
// trial: it has to have shown that it is well.
func (c *Replica) spares(now int64, panicking bool) bool {
	return c.places(now, panicking) && (panicking || !c.Health.Cooling())
}

// Plain reports that the replica's Condition is Active: of nearly every replica at nearly
// every time it tells that it places, spares and keeps, before those are asked.
func (c *Replica) Plain() bool { return c.State == Active && !c.Drained && c.Health.Cooldown == 0 }

// keeps reports whether the replica still serves its pins at now. Sessions do not
// come back to one that cools down before a trial has shown that it is well;
// one that drains takes no trial, so its own sessions are what tries it.
func (c *Replica) keeps(now int64, panicking bool) bool {
	switch {
	case panicking:
		return c.State != Removed
	case c.state() == Draining:
		return !c.Health.Cooling() || c.Health.ripe(now)
	}
	return c.State == Active && !c.Health.Cooling()
}
