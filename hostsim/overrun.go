package hostsim

import (
	"errors"
	"fmt"
	"time"
)

// MaxEvents is the number of events that Host.Advance runs at one moment of the clock, and Worker.RunDue in one call, on
// top of those that had been caused before: messages in queues, answers to call-outs, ticks. A plugin that calls out again
// upon each answer that takes no time, or puts a message into a queue upon each that it hears of, would otherwise keep them
// from ever returning. What a callback leaves to be done after it has the same bound.
const MaxEvents = 10_000

// errEndless is what becomes of a virtual machine that calls itself back for ever, where a gateway's thread would hang.
var errEndless = errors.New("asked for another callback in each callback, without end")

// Overruns returns how often Advance or RunDue has left events behind because of MaxEvents. Each time is logged too, at
// LogCritical.
func (h *Host) Overruns() uint64 { return h.overruns.Load() }

// overrun notes one, after so many events.
func (h *Host) overrun(worker, ran int, now time.Duration, e event) {
	h.overruns.Add(1)
	h.log(worker, LogCritical, fmt.Sprintf("hostsim: %d events at one moment (%v after the start) and still more to come, the next of them %s: "+
		"they wait until time is advanced again; is each one the cause of another?", ran, now-monotonicStart, e.what))
}

// eventBound is how many events may run from now on without the clock moving.
func (h *Host) eventBound(threads ...*Worker) int {
	n := h.eventLimit
	for _, w := range threads {
		n += w.backlog()
	}
	return n
}

// backlog is the number of events that have been caused and not run, whenever they are due.
func (w *Worker) backlog() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.mail.len()
	for _, v := range w.machines() {
		for _, r := range v.roots {
			n += 1 + len(r.calls)
			for _, c := range r.grpcCalls {
				n += 1 + c.backlog()
			}
		}
	}
	return n
}
