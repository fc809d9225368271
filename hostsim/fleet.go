package hostsim

import (
	"errors"
	"fmt"
	"time"
)

// Fleet is several hosts on one virtual clock, each with shared data of its own, as gateways side by side are, and what they
// share: the services behind their call-outs. It is for tests of how gateways agree with each other, see Explore.
type Fleet struct {
	// Hosts are the gateways. They have one Config.Clock, a *VirtualClock, and no Recorder.
	Hosts []*Host
	// Calls are what carries the hosts' call-outs, for those hosts whose call-outs an exploration takes in steps.
	Calls []*HeldCalls
	// Others are things of the test that are set back with the hosts. Each takes down how it stands and returns the way back:
	//
	//	func() func() { was := server.Clone(); return func() { server.Restore(was) } }
	Others []func() (restore func())

	at *orderRun // the order that runs, or nil
}

// FleetSnapshot is a fleet at one moment.
type FleetSnapshot struct {
	hosts    []*Snapshot
	restores []func()
}

// Snapshot takes one. See Host.Snapshot for when that is possible; in addition the error wraps ErrConfig where the hosts do
// not share a virtual clock.
func (f *Fleet) Snapshot() (*FleetSnapshot, error) {
	if err := f.sameClock(); err != nil {
		return nil, err
	}
	s := &FleetSnapshot{}
	for i, h := range f.Hosts {
		one, err := h.Snapshot()
		if err != nil {
			return nil, fmt.Errorf("host %d: %w", i, err)
		}
		s.hosts = append(s.hosts, one)
	}
	for _, c := range f.Calls {
		s.restores = append(s.restores, c.save())
	}
	for _, save := range f.Others {
		s.restores = append(s.restores, save())
	}
	return s, nil
}

// Restore sets the fleet back, as Host.Restore does a host.
func (f *Fleet) Restore(s *FleetSnapshot) error {
	if len(s.hosts) != len(f.Hosts) {
		return fmt.Errorf("%w: the snapshot is of another fleet", ErrSnapshot)
	}
	for i, h := range f.Hosts {
		if err := h.Restore(s.hosts[i]); err != nil {
			return fmt.Errorf("host %d: %w", i, err)
		}
	}
	for _, restore := range s.restores {
		restore()
	}
	return nil
}

func (f *Fleet) sameClock() error {
	if len(f.Hosts) == 0 {
		return fmt.Errorf("%w: a fleet without hosts", ErrConfig)
	}
	first, ok := f.Hosts[0].clock.(*VirtualClock)
	for _, h := range f.Hosts {
		if c, _ := h.clock.(*VirtualClock); !ok || c != first {
			return fmt.Errorf("%w: the hosts of a fleet need one VirtualClock", ErrConfig)
		}
	}
	return nil
}

func (f *Fleet) clock() *VirtualClock {
	if err := f.sameClock(); err != nil {
		panic(err.Error())
	}
	return f.Hosts[0].clock.(*VirtualClock)
}

// Advance moves the clock on by d and has each host run what falls due on the way, at its own time; those of one moment in
// the order of Hosts. See Host.Advance.
func (f *Fleet) Advance(d time.Duration) {
	clock := f.clock()
	for end := clock.Monotonic() + max(d, 0); ; {
		next := end
		var overruns uint64
		for _, h := range f.Hosts {
			if w, e := h.firstEvent(); w != nil {
				next = min(next, e.at)
			}
			overruns += h.Overruns()
		}
		clock.Advance(next - clock.Monotonic())
		more := false
		for _, h := range f.Hosts {
			h.Advance(0)
			overruns -= h.Overruns()
		}
		for _, h := range f.Hosts {
			w, e := h.firstEvent()
			more = more || w != nil && e.at <= end
		}
		if overruns != 0 || !more {
			clock.Advance(end - clock.Monotonic())
			return
		}
	}
}

// Tick has one host alone tick: where its next tick is not due yet, the clock moves on until it is. Calls of the host whose
// time is up then hear so first. It returns false for a host that has no ticks.
func (f *Fleet) Tick(h *Host) bool {
	next, ok := h.nextTick()
	if !ok {
		return false
	}
	f.clock().Advance(next - h.clock.Monotonic())
	h.Advance(0)
	return true
}

// nextTick is the monotonic time of the host's next tick.
func (h *Host) nextTick() (next time.Duration, ok bool) {
	for _, w := range h.threads() {
		w.mu.Lock()
		for _, v := range w.machines() {
			if r := v.nextTick(); r != nil && (!ok || r.next < next) {
				next, ok = r.next, true
			}
		}
		w.mu.Unlock()
	}
	return next, ok
}

// work counts what a host has done: callbacks, and HTTP calls.
func (h *Host) work() (callbacks, calls uint64) {
	for _, w := range h.threads() {
		w.mu.Lock()
		for _, v := range w.machines() {
			for _, e := range v.all {
				callbacks += e.calls
			}
			calls += uint64(v.lastCall[calloutHTTP] + v.lastCall[calloutGRPC] + v.lastCall[calloutGRPCStream])
		}
		w.mu.Unlock()
	}
	return callbacks, calls
}

// hear has the plugin hear of a call now, if there is anything to hear: its answer, or that its time is up.
func (c *HTTPCall) hear() error {
	w := c.host.main
	if c.Worker >= 0 {
		w = c.host.workers[c.Worker]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	due := c.due()
	if due == nil || due.at > c.host.clock.Monotonic() {
		return errors.New("hostsim: a call without an answer")
	}
	for _, v := range w.machines() {
		for _, r := range v.roots {
			for _, call := range r.calls {
				if call == c && v.dead == nil {
					w.recordAnswer(c, &due.HTTPResponse)
					v.deliverCall(r, c, &due.HTTPResponse)
					w.reap()
					return nil
				}
			}
		}
	}
	return nil // who asked is gone
}
