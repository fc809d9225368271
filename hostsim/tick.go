package hostsim

import (
	"context"
	"time"
)

// Advance moves the virtual clock on by d and runs what falls due on the way, messages in shared queues, answers to
// call-outs and ticks, each at its own time: those of one moment in the order main thread, worker 0, worker 1 and so on, a
// worker's messages first and its tick last. Advance(0) runs what is due now. Where events cause more than MaxEvents at one
// moment, the clock moves on to its end without the others, which then wait for the next call (see Overruns). It panics on a
// clock other than *VirtualClock.
func (h *Host) Advance(d time.Duration) {
	clock, ok := h.clock.(*VirtualClock)
	if !ok {
		panic("hostsim: Advance needs a VirtualClock")
	}
	h.advancing.Lock()
	defer h.advancing.Unlock()
	end := clock.Monotonic() + max(d, 0)
	bound := h.eventBound(h.threads()...)
	for ran := 0; ; ran++ {
		w, e := h.firstEvent()
		if w == nil || e.at > end {
			break
		}
		if e.at > clock.Monotonic() { // not backwards, where an answer was due before
			clock.Advance(e.at - clock.Monotonic())
			ran, bound = 0, h.eventBound(h.threads()...)
		}
		if ran == bound {
			h.overrun(w.index, ran, clock.Monotonic(), e)
			break
		}
		w.runEvent(e.at)
	}
	clock.Advance(end - clock.Monotonic())
}

// NextEvent is how long after now the next thing falls due that Advance would run, as things stand, and whether there is any.
// Who drives several hosts by one clock advances each when its next event falls due, so that what they share hears of all in
// the order of time.
func (h *Host) NextEvent() (after time.Duration, ok bool) {
	w, e := h.firstEvent()
	if w == nil {
		return 0, false
	}
	return max(e.at-h.clock.Monotonic(), 0), true
}

// RunDue runs what is due on this worker now, on its own: answers to call-outs, and a tick. It returns whether there
// was anything; of more than MaxEvents that it causes it leaves the others (see Overruns). A gateway's threads do the
// same each for itself; Host.Advance runs all of them, in a fixed order. In a Scenario it is the way to have a tick
// meet what other workers do: move the clock by VirtualClock.Advance, which runs nothing, before.
func (w *Worker) RunDue() bool {
	now := w.host.clock.Monotonic()
	bound := w.host.eventBound(w)
	for ran := 0; ; ran++ {
		w.host.beforeEvents(w)
		e, ok := w.nextEvent()
		if !ok || e.at > now {
			return ran > 0
		}
		if ran == bound {
			w.host.overrun(w.index, ran, now, e)
			return true
		}
		w.runEvent(now)
	}
}

// firstEvent finds the thread whose event comes first.
func (h *Host) firstEvent() (first *Worker, e event) {
	for _, w := range h.threads() {
		if next, ok := w.nextEvent(); ok && (first == nil || next.at < e.at) {
			first, e = w, next
		}
	}
	return first, e
}

// RunTicks fires ticks and delivers messages and answers as the clock passes them until ctx ends, then returns ctx's error.
// It is the real clock's counterpart of Advance.
func (h *Host) RunTicks(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		w, e := h.firstEvent()
		wait := time.Hour
		if w != nil {
			wait = e.at - h.clock.Monotonic()
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
