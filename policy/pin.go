package policy

// Pin is what is remembered of one session.
type Pin struct {
	// Replica is the id of the session's replica, never 0.
	Replica uint32
	// LastSeen is when a turn of the session was last recorded, in milliseconds
	// of the caller's monotonic clock.
	LastSeen int64
}

// Reason says why a turn goes where it goes.
type Reason uint8

const (
	// Pinned: the session's own replica.
	Pinned Reason = iota
	// Placed: on the replica that the policy chose for a new session, or for a
	// turn if the policy does not pin.
	Placed
	// FailoverUnhealthy: placed anew, the old replica is unhealthy or cools down.
	FailoverUnhealthy
	// FailoverRemoved: placed anew, the old replica is no longer a member.
	FailoverRemoved
	// Expired: placed anew, the session was idle for the timeout.
	Expired
	// Keyless: no session id; not recorded.
	Keyless
	// Oversized: a session id over the limit; not recorded.
	Oversized
	// TableFull: no room for another session; not recorded.
	TableFull
	// NoReplica: the pool has no member; the gateway decides.
	NoReplica
	// Error: shared data could not be used; not recorded.
	Error

	// NumReasons is the number of reasons.
	NumReasons = int(Error) + 1
)

var reasonNames = [NumReasons]string{
	"pinned", "placed", "failover_unhealthy", "failover_removed", "expired",
	"keyless", "oversized", "table_full", "no_replica", "error",
}

// String returns the reason as headers, metrics and logs spell it.
func (r Reason) String() string {
	if int(r) < NumReasons {
		return reasonNames[r]
	}
	return "unknown"
}

// Judge rules on the pin of a session that returns: Pinned if the turn goes to
// the pin's replica, else the reason to place the session anew. now is in the
// clock of LastSeen, timeout in milliseconds, above 0. Pure.
func Judge(p Pin, r *Replicas, now, timeout int64) Reason {
	i, ok := r.Place(p.Replica)
	if ok && r.List[i].Plain() && !Idle(p, now, timeout) { // nearly all
		return Pinned
	}
	i = r.Index(p.Replica)
	switch {
	case i >= 0 && r.List[i].Void:
		return Placed // no session of before is left
	case Idle(p, now, timeout):
		return Expired
	case i < 0 || r.List[i].State == Removed:
		return FailoverRemoved
	case !r.List[i].keeps(now, r.Panicking(now)):
		return FailoverUnhealthy
	}
	return Pinned
}

// Idle reports whether the pin has expired: now is timeout or more after the
// last recorded turn. Pure.
func Idle(p Pin, now, timeout int64) bool { return now-p.LastSeen >= timeout }

// Over reports whether the pin no longer stands for a session, so that a sweep may
// take it out: it has expired, or Reset ended it. Cost: O(log n). Pure.
func Over(p Pin, r *Replicas, now, timeout int64) bool {
	return Idle(p, now, timeout) || r.Void(p.Replica)
}

// Renew reports whether a turn at now should be recorded in the pin. A write per
// turn would buy nothing: the record may lag by a sixteenth of the timeout, so a
// session expires after 15/16 to 16/16 of the timeout without a turn. Pure.
func Renew(p Pin, now, timeout int64) bool { return now-p.LastSeen > timeout/16 }
