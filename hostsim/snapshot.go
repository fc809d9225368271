package hostsim

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrSnapshot is wrapped by the errors of Snapshot, Restore and Explore about a host that cannot be set back.
var ErrSnapshot = errors.New("hostsim: cannot be set back")

// Snapshot is everything that a host's plugin can notice, at one moment: memory and globals of every virtual machine,
// timers, requests to upstreams that are under way, random numbers, the plugin's namespace of shared data, all queues,
// metrics, counts of faults, kept log entries, and the time of a VirtualClock. It costs a copy of all memories.
type Snapshot struct {
	host    *Host
	updates int
	workers []workerSnapshot
	space   sharedSnapshot
	stats   map[statKey]statSnapshot
	faults  faultSnapshot
	logs    logbook
	elapsed int64
}

// workerSnapshot is a worker and its virtual machine.
type workerSnapshot struct {
	vm         *vm
	state      *vmSnapshot
	generation uint64
	shut       bool
	reloadAt   time.Duration
	mail       mailSnapshot
}

// Snapshot takes one. It returns an error that wraps ErrSnapshot while a stream, a connection or a gRPC call is under
// way, for its other side is the caller's, and for a host that is recorded, whose lines cannot be taken back. Not to be
// called while anything else uses the host.
func (h *Host) Snapshot() (*Snapshot, error) {
	h.reconfiguring.Lock()
	defer h.reconfiguring.Unlock()
	if h.config.Recorder != nil {
		return nil, fmt.Errorf("%w: it is recorded", ErrSnapshot)
	}
	s := &Snapshot{host: h, updates: h.updates, space: h.shared.snapshot(), stats: h.metrics.snapshot(), logs: h.logs.snapshot()}
	s.faults = h.faults.Load().snapshot()
	if c, ok := h.clock.(*VirtualClock); ok {
		s.elapsed = c.elapsed.Load()
	}
	for _, w := range h.threads() {
		each, err := w.snapshot()
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrSnapshot, ThreadName(w.index), err)
		}
		s.workers = append(s.workers, each)
	}
	return s, nil
}

// Restore sets the host back to a snapshot of it. Streams begun since are gone and must not be used any more; counters go
// on. A virtual machine that has died or grown since is replaced by a new instance, which takes some milliseconds; else
// memory pages that differ are copied. The error wraps ErrSnapshot: the snapshot is another host's, or the configuration
// has changed since. Not to be called while anything else uses the host. What a module keeps in tables, and in globals
// that are vectors or references, is not set back.
func (h *Host) Restore(s *Snapshot) error {
	h.reconfiguring.Lock()
	defer h.reconfiguring.Unlock()
	if s.host != h || s.updates != h.updates {
		return fmt.Errorf("%w: the snapshot is of another host or configuration", ErrSnapshot)
	}
	for i, w := range h.threads() {
		if err := w.restore(&s.workers[i]); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSnapshot, ThreadName(w.index), err)
		}
	}
	h.shared.restore(s.space)
	h.metrics.restore(s.stats)
	h.faults.Store(s.faults.restore())
	h.logs.restore(&s.logs)
	if c, ok := h.clock.(*VirtualClock); ok {
		c.elapsed.Store(s.elapsed)
	}
	return nil
}

func (w *Worker) snapshot() (s workerSnapshot, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open > 0 {
		return s, fmt.Errorf("%d streams or connections are open", w.open)
	}
	if len(w.old) > 0 {
		return s, errors.New("an update drains")
	}
	for _, r := range w.vm.roots {
		if len(r.grpcCalls) > 0 {
			return s, fmt.Errorf("%d gRPC calls are under way", len(r.grpcCalls))
		}
	}
	return workerSnapshot{vm: w.vm, state: w.vm.snapshot(), generation: w.generation, shut: w.shut, reloadAt: w.reloadAt, mail: w.mail.snapshot()}, nil
}

func (w *Worker) restore(s *workerSnapshot) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.vm != s.vm { // a reload has followed
		w.drop(w.vm)
		w.vm = s.vm
		w.vm.program.use()
		w.vm.clearCounts() // they are in past
	}
	w.open, w.generation, w.shut, w.reloadAt = 0, s.generation, s.shut, s.reloadAt
	w.mail.restore(s.mail)
	return w.vm.restore(s.state)
}

type statSnapshot struct {
	stat         *stat
	value, count uint64
}

func (r *registry) snapshot() map[statKey]statSnapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[statKey]statSnapshot, len(r.stats))
	for k, s := range r.stats {
		out[k] = statSnapshot{s, s.value.Load(), s.count.Load()}
	}
	return out
}

func (r *registry) restore(from map[statKey]statSnapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.stats)
	for k, s := range from {
		s.stat.value.Store(s.value)
		s.stat.count.Store(s.count)
		r.stats[k] = s.stat
	}
}

// snapshot copies the entries alone.
func (b *logbook) snapshot() logbook {
	b.mu.Lock()
	defer b.mu.Unlock()
	return logbook{entries: slices.Clone(b.entries), first: b.first, bytes: b.bytes}
}

func (b *logbook) restore(from *logbook) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries, b.first, b.bytes = append(b.entries[:0], from.entries...), from.first, from.bytes
}
