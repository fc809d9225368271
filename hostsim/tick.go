package hostsim

import (
	"context"
	"time"
)

// Advance moves the virtual clock on by d and runs every tick that falls due on the way, each at its own time, those of
// one moment in the order main thread, worker 0, worker 1 and so on. It panics on a clock other than *VirtualClock.
func (h *Host) Advance(d time.Duration) {
	clock, ok := h.clock.(*VirtualClock)
	if !ok {
		panic("hostsim: Advance needs a VirtualClock")
	}
	h.advancing.Lock()
	defer h.advancing.Unlock()
	end := clock.Monotonic() + max(d, 0)
	for {
		w, at := h.firstTick()
		if w == nil || at > end {
			break
		}
		clock.Advance(at - clock.Monotonic())
		w.tickAt(at)
	}
	clock.Advance(end - clock.Monotonic())
}

// firstTick finds the thread whose tick comes first.
func (h *Host) firstTick() (first *Worker, at time.Duration) {
	for _, w := range h.threads() {
		if next, ok := w.nextTick(); ok && (first == nil || next < at) {
			first, at = w, next
		}
	}
	return first, at
}

// RunTicks fires ticks as the clock passes them until ctx ends, then returns ctx's error. It is the real clock's
// counterpart of Advance.
func (h *Host) RunTicks(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		w, at := h.firstTick()
		wait := time.Hour
		if w != nil {
			wait = at - h.clock.Monotonic()
		}
		if wait <= 0 {
			w.tickAt(h.clock.Monotonic())
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.ticker:
		case <-timer.C:
		}
	}
}

// wakeTicker tells RunTicks that a timer has started.
func (h *Host) wakeTicker() {
	select {
	case h.ticker <- struct{}{}:
	default:
	}
}
