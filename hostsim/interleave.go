package hostsim

import (
	"fmt"
	"math/rand/v2"
)

// OnSharedData installs a function that runs before each shared-data call of a virtual machine, on its goroutine, and may
// block: a test can so hold one worker between its read and its write. It must not call into the worker that it is told
// of. Nil removes it.
func (h *Host) OnSharedData(f func(worker int, op SharedOp, key string)) {
	if f == nil {
		h.sharedHook.Store(nil)
		return
	}
	h.sharedHook.Store(&f)
}

// schedule lets one of several workers run at a time.
type schedule struct {
	gates  []chan struct{}
	events chan scheduleEvent
	trace  []SharedAccess
}

// scheduleEvent says that a worker has stopped: at a shared-data call, or for good.
type scheduleEvent struct {
	worker int
	done   bool
	panic  any
}

// Interleave runs fns[i] with worker i, each on its own goroutine, but lets only one of them run at a time and changes
// over, by a random choice drawn from seed, before each shared-data call. The same seed, module and state give the same
// order; the returned trace shows it. fns must each use only their own worker, and none may call Interleave, Advance or
// Reconfigure. It panics when there are more functions than workers, and with what a function panicked.
func (h *Host) Interleave(seed uint64, fns ...func(*Worker)) []SharedAccess {
	if len(fns) > len(h.workers) {
		panic(fmt.Sprintf("hostsim: Interleave of %d functions on %d workers", len(fns), len(h.workers)))
	}
	h.advancing.Lock()
	defer h.advancing.Unlock()
	s := &schedule{events: make(chan scheduleEvent)}
	for range fns {
		s.gates = append(s.gates, make(chan struct{}))
	}
	h.schedule.Store(s)
	defer h.schedule.Store(nil)
	for i, fn := range fns {
		go s.run(i, fn, h.workers[i])
	}
	s.drive(rand.New(rand.NewPCG(seed, uint64(len(fns)))))
	return s.trace
}

// run is one worker's goroutine.
func (s *schedule) run(i int, fn func(*Worker), w *Worker) {
	<-s.gates[i]
	ev := scheduleEvent{worker: i, done: true}
	defer func() { s.events <- ev }() // also when a test calls Goexit
	defer func() { ev.panic = recover() }()
	fn(w)
}

// drive lets a random one of the workers go on until all are done.
func (s *schedule) drive(rng *rand.Rand) {
	ready := make([]int, len(s.gates))
	for i := range ready {
		ready[i] = i
	}
	var failure any
	for len(ready) > 0 {
		n := rng.IntN(len(ready))
		s.gates[ready[n]] <- struct{}{}
		ev := <-s.events
		if ev.done {
			ready = append(ready[:n], ready[n+1:]...)
		}
		if ev.panic != nil && failure == nil {
			failure = ev.panic
		}
	}
	if failure != nil {
		panic(failure)
	}
}

// beforeShared runs the caller's hook and gives way to other workers.
func (h *Host) beforeShared(worker int, op SharedOp, key []byte) {
	if f := h.sharedHook.Load(); f != nil {
		(*f)(worker, op, string(key))
	}
	if s := h.schedule.Load(); s != nil && worker >= 0 && worker < len(s.gates) {
		s.events <- scheduleEvent{worker: worker}
		<-s.gates[worker]
	}
}

// afterShared records a call of an interleaved run, in which only one worker runs.
func (h *Host) afterShared(worker int, op SharedOp, key []byte, status Status) {
	if s := h.schedule.Load(); s != nil && worker >= 0 && worker < len(s.gates) {
		s.trace = append(s.trace, SharedAccess{Worker: worker, Op: op, Key: string(key), Status: status})
	}
}
