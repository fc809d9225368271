package plugin

// lease elects the worker that does a pool's periodic work: sweeps, repairs,
// gauges. Requests never depend on it. The holder renews at each tick; a holder
// that is gone is followed by another once the lease has run out.
//
//	schema version u8, owner u64, expiry u64 (ms); little-endian
type lease struct {
	data  sharedData
	key   string
	owner uint64
	// passed counts the ticks at which the lease could have been taken.
	passed int
	buf    []byte
}

func newLease(data sharedData, pool string, owner uint64) *lease {
	return &lease{data: data, key: keyRoot + pool + "/lease", owner: owner}
}

// hold reports whether this worker holds the lease at now (ms), taking or
// renewing it if it may. A reluctant worker lets a free lease lie for that many
// ticks, so that others come first; a superseded one lets even its own run out.
func (l *lease) hold(now int64, reluctance int) bool {
	value, cas, err := l.data.Get(l.key)
	if err != nil {
		return false
	}
	owner, expiry, ok := slotOwner(value)
	mine := ok && owner == l.owner && reluctance < superseded
	switch {
	case mine:
	case ok && now < expiry:
		l.passed = 0
		return false
	default:
		if l.passed++; l.passed <= reluctance {
			return false
		}
	}
	l.passed = 0
	l.buf = appendOwner(l.buf[:0], l.owner, now+staleAfter)
	return l.data.Set(l.key, l.buf, cas) == nil
}

// mine reports whether this worker holds the lease at now (ms).
func (l *lease) mine(now int64) bool {
	value, _, err := l.data.Get(l.key)
	owner, expiry, ok := slotOwner(value)
	return err == nil && ok && owner == l.owner && now < expiry
}
