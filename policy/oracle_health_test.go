package policy_test

import (
	"slices"
)

func (o *oracle) fail(id uint32, began, now int64) {
	c := o.byID(id)
	switch {
	case c == nil:
	case c.length == 0:
		if c.failures++; c.failures >= int(o.health.Failures) {
			c.failures, c.since, c.length = 0, now, o.health.Cooldown
		}
	case began >= c.ready(), len(c.trials) > 0 && began > c.since:
		c.since, c.length, c.trials = now, min(2*c.length, o.health.MaxCooldown), nil
	}
}

func (o *oracle) succeed(id uint32, began int64) {
	c := o.byID(id)
	if c == nil || c.length > 0 && began <= c.since {
		return
	}
	cooled := c.length > 0
	outage := !slices.ContainsFunc(o.replicas, func(e oracleReplica) bool { return e.active() && e.length == 0 })
	c.failures, c.length, c.trials = 0, 0, nil
	if !cooled {
		return
	}
	if outage {
		// All are well until they fail once more, and none joins anew.
		for i := range o.replicas {
			if e := &o.replicas[i]; e.length > 0 {
				e.failures, e.length, e.trials = 65534, 0, nil
			}
		}
	} else if c.active() {
		c.joining = true
		c.joining = !o.level(c)
	}
}

// try records a trial where one is due.
func (o *oracle) try(c *oracleReplica, now int64) {
	if c.length > 0 && c.ready() <= now {
		c.trials = append(c.trials, now)
	}
}
