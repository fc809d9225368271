package hostsim

import (
	"context"
	"time"
)

// Advance moves the virtual clock on by d and runs what falls due on the way, messages in shared queues, answers to
// call-outs and ticks, each at its own time: those of one moment in the order main thread, worker 0, worker 1 and so on, a
// worker's messages first and its tick last. Advance(0) runs what is due now. It panics on a clock other than *VirtualClock.
func (h *Host) Advance(d time.Duration) {
	clock, ok := h.clock.(*VirtualClock)
	if !ok {
		panic("hostsim: Advance needs a VirtualClock")
	}
	h.advancing.Lock()
	defer h.advancing.Unlock()
	end := clock.Monotonic() + max(d, 0)
	for {
		w, at := h.firstEvent()
		if w == nil || at > end {
			break
		}
		clock.Advance(at - clock.Monotonic()) // not backwards, where an answer was due before
		w.runEvent(at)
	}
	clock.Advance(end - clock.Monotonic())
}

// RunDue runs what is due on this worker now, on its own: answers to call-outs, and a tick. It returns whether there was
// anything. A gateway's threads do the same each for itself; Host.Advance runs all of them, in a fixed order. In a
// Scenario it is the way to have a tick meet what other workers do: move the clock by VirtualClock.Advance, which runs
// nothing, before.
func (w *Worker) RunDue() bool {
	ran := false
	now := w.host.clock.Monotonic()
	for {
		w.host.beforeEvents(w)
		if at, ok := w.nextEvent(); !ok || at > now {
			return ran
		}
		w.runEvent(now)
		ran = true
	}
}

// firstEvent finds the thread whose event comes first.
func (h *Host) firstEvent() (first *Worker, at time.Duration) {
	for _, w := range h.threads() {
		if next, ok := w.nextEvent(); ok && (first == nil || next < at) {
			first, at = w, next
		}
	}
	return first, at
}

// RunTicks fires ticks and delivers messages and answers as the clock passes them until ctx ends, then returns ctx's error.
// It is the real clock's counterpart of Advance.
func (h *Host) RunTicks(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		w, at := h.firstEvent()
		wait := time.Hour
		if w != nil {
			wait = at - h.clock.Monotonic()
		}
		if wait <= 0 {
			w.runEvent(h.clock.Monotonic())
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

// wakeTicker tells RunTicks that a timer has started or an answer has come.
func (h *Host) wakeTicker() {
	select {
	case h.ticker <- struct{}{}:
	default:
	}
}
