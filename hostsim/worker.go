package hostsim

import (
	"strconv"
	"sync"
	"time"
)

// Worker is one virtual machine and the thread that owns it. Its methods and those of its streams are safe for concurrent
// use: calls take turns.
type Worker struct {
	host  *Host
	index int

	mail mailbox // has its own lock

	mu         sync.Mutex
	vm         *vm
	old        []*vm // of earlier code, draining, oldest first
	open       int
	generation uint64
	shut       bool          // Shutdown has been here
	reloadAt   time.Duration // monotonic; no further attempt at a reload before it
	past       Counters      // of virtual machines that are gone
}

// ThreadName is how messages call a virtual machine by its index: "main thread", "canary", or "worker 0" and so on.
func ThreadName(index int) string {
	switch index {
	case MainThread:
		return "main thread"
	case Canary:
		return "canary"
	}
	return "worker " + strconv.Itoa(index)
}

// Index is the worker's number, or MainThread.
func (w *Worker) Index() int { return w.index }

// OpenStreams is the number of streams and connections begun and not yet ended.
func (w *Worker) OpenStreams() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// Err is nil while the virtual machine lives, and else the trap that killed it, wrapped in ErrTrap.
func (w *Worker) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.vm.dead
}

// Memory is the size of the module's linear memory in bytes. It never shrinks, but for a virtual machine's replacement.
func (w *Worker) Memory() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.vm.memory()
}

// boot gives the worker a virtual machine with the host's current code and configuration. What becomes of the one that it
// had is the caller's to say. On failure that stays.
func (w *Worker) boot() error {
	v, err := w.host.newVM(w.host.program.Load(), w.index, w.generation)
	if err != nil {
		return err
	}
	w.generation++
	if err := v.addRoot(w.host.pluginConfig()); err != nil {
		v.close()
		return err
	}
	v.program.use()
	w.vm = v
	return nil
}

// serving is the virtual machine for a new stream, or nil on a crashed worker. With FailReload it is built anew, lazily
// as in Envoy: no ticks run on a crashed worker until its next request.
func (w *Worker) serving() *vm {
	if w.shut {
		return nil
	}
	if w.vm.dead == nil {
		return w.vm
	}
	if w.host.config.FailurePolicy != FailReload {
		return nil
	}
	now := w.host.clock.Monotonic()
	if now < max(w.reloadAt, w.vm.diedAt+w.host.config.ReloadBackoff) {
		return nil
	}
	dead := w.vm
	if err := w.boot(); err != nil {
		w.reloadAt = now + w.host.config.ReloadBackoff
		w.host.log(w.index, LogError, "reload failed: "+err.Error())
		return nil
	}
	w.drop(dead)
	return w.vm
}

// Counters returns what this worker has counted, over all its virtual machines so far.
func (w *Worker) Counters() Counters {
	w.mu.Lock()
	defer w.mu.Unlock()
	var c Counters
	c.merge(w.past)
	for _, v := range w.machines() {
		c.add(v)
	}
	return c
}

// event is something that falls due on a worker's virtual machine.
type event struct {
	at   time.Duration // monotonic
	what string
	run  func()
}

// firstEvent is the worker's first event. Of several at one time it is a message in a queue, then an answer to an HTTP
// call, then to a gRPC call, then a tick. Messages for a thread whose virtual machine is dead are lost, as in Envoy.
func (w *Worker) firstEvent() (first event, ok bool) {
	take := func(at time.Duration, what string, run func()) {
		if !ok || at < first.at {
			first, ok = event{at: at, what: what, run: run}, true
		}
	}
	if n, found := w.mail.first(); found {
		take(n.at, "a message in a queue", func() { w.mail.take(); w.recordDue("queue_ready"); w.vm.deliverNotice(n) })
	}
	for _, v := range w.machines() {
		if r, call, answer := v.nextCall(); answer != nil {
			take(answer.at, "an answer to an HTTP call", func() { w.recordAnswer(call, &answer.HTTPResponse); v.deliverCall(r, call, &answer.HTTPResponse) })
		}
		if r, call, e := v.nextGRPC(); e != nil {
			take(e.at, "an answer to a gRPC call", func() { w.recordDue("grpc"); v.deliverGRPC(r, call, e) })
		}
		if r := v.nextTick(); r != nil {
			take(r.next, "a tick", func() { w.recordDue("tick"); v.tickRoot(r) })
		}
	}
	return first, ok
}

// runEvent runs the worker's first event, if it falls at or before now.
func (w *Worker) runEvent(now time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.firstEvent(); ok && e.at <= now {
		e.run()
		w.reap()
	}
}

// nextEvent is the worker's first event, to look at.
func (w *Worker) nextEvent() (e event, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.firstEvent()
}
