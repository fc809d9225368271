package hostsim

import (
	"sync/atomic"
	"time"
)

// Clock is the host's time. Implementations are safe for concurrent use.
type Clock interface {
	// Now is the time of day that the module sees, to the nanosecond.
	Now() time.Time
	// Monotonic is the time since some fixed moment before the host started; never zero, never going back.
	Monotonic() time.Duration
}

// VirtualEpoch is where a new VirtualClock stands.
var VirtualEpoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// monotonicStart is what a monotonic clock reads at first. Go's runtime takes a nanotime of 0 for "not set" and dies.
const monotonicStart = time.Second

// VirtualClock moves only when told to. The time of day stands still while the module runs; its monotonic clock
// does not quite (see monotonicStep). The zero value is not usable; see NewVirtualClock.
type VirtualClock struct{ elapsed atomic.Int64 }

// NewVirtualClock returns a clock that stands at VirtualEpoch.
func NewVirtualClock() *VirtualClock { return &VirtualClock{} }

// Now is VirtualEpoch plus all advances.
func (c *VirtualClock) Now() time.Time { return VirtualEpoch.Add(time.Duration(c.elapsed.Load())) }

// Monotonic is one second plus all advances.
func (c *VirtualClock) Monotonic() time.Duration {
	return monotonicStart + time.Duration(c.elapsed.Load())
}

// Advance moves the clock on by d and fires nothing: Host.Advance also runs the ticks that fall due. A negative d is
// ignored.
func (c *VirtualClock) Advance(d time.Duration) {
	if d > 0 {
		c.elapsed.Add(int64(d))
	}
}

// RealClock is the machine's own time, for serving. The zero value is not usable; see NewRealClock.
type RealClock struct{ start time.Time }

// NewRealClock returns a clock that runs.
func NewRealClock() *RealClock { return &RealClock{start: time.Now()} }

// Now is the time of day.
func (c *RealClock) Now() time.Time { return time.Now() }

// Monotonic is one second plus the time since NewRealClock.
func (c *RealClock) Monotonic() time.Duration { return monotonicStart + time.Since(c.start) }

// monotonicStep is how far the module's monotonic clock moves when it is read again and the host's has not moved. Go's
// collector shares out its work by elapsed nanotime, so on a clock that stands still it would never give way, and on one
// that runs much faster than the work it stalls: with 100 microseconds or more a read, 6 GB of garbage in pieces of 1 MB
// leave a heap of gigabytes, with 1 microsecond one of 8 MiB. Each virtual machine has its own steps, which the next
// advance of the host clock absorbs, so a run stays repeatable. The time of day has no steps: what a plugin stores and
// compares with other workers is exact.
const monotonicStep = time.Microsecond
