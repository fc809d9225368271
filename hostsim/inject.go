package hostsim

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// errInjected is the cause of a trap that a Fault asked for.
var errInjected = errors.New("a fault was injected here")

// InjectFaults puts faults into force in place of the earlier ones, with their counts at zero; nil removes all. Where
// several hit one call, the first of the list that traps, answers or runs out of memory decides; delays add up. The error
// wraps ErrFault, names the fault by its place in the list, and leaves the earlier faults in force. Config.Faults does the
// same from the first instance on, the canary's start included.
func (h *Host) InjectFaults(faults []Fault) error {
	s, err := armFaults(faults)
	if err != nil {
		return err
	}
	h.faults.Store(s)
	return nil
}

// FaultsFired returns how often each fault of the last InjectFaults, or of Config.Faults, has been played, in its order.
func (h *Host) FaultsFired() []int {
	s := h.faults.Load()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]int, len(s.list))
	for i, f := range s.list {
		out[i] = f.fired
	}
	return out
}

// faultSet is what one InjectFaults has put into force. All virtual machines share it.
type faultSet struct {
	mu   sync.Mutex
	list []*armedFault
	at   map[string][]*armedFault
}

// armedFault is a Fault in force.
type armedFault struct {
	worker             int
	nth, every, times  int // times is 0 for no end
	delay              time.Duration
	answers            bool
	answer             uint32
	traps, outOfMemory bool

	seen, fired int
}

// armFaults returns nil for no faults.
func armFaults(faults []Fault) (*faultSet, error) {
	if len(faults) == 0 {
		return nil, nil
	}
	s := &faultSet{at: map[string][]*armedFault{}}
	for i := range faults {
		f := &faults[i]
		if err := f.check(); err != nil {
			return nil, fmt.Errorf("%w: faults[%d]: %w", ErrFault, i, err)
		}
		a := f.arm()
		s.list = append(s.list, a)
		s.at[f.At] = append(s.at[f.At], a)
	}
	return s, nil
}

// arm turns a valid fault's text into what a call checks.
func (f *Fault) arm() *armedFault {
	a := &armedFault{nth: f.Nth, every: max(f.Every, 1), times: f.Times, traps: f.Trap, outOfMemory: f.OutOfMemory}
	a.worker, _ = f.worker()
	a.delay, _ = f.delay()
	if f.Answer != "" {
		a.answers = true
		a.answer, _ = f.answer()
	}
	if f.Nth > 0 && f.Every == 0 && f.Times == 0 {
		a.times = 1
	}
	if a.nth == 0 {
		a.nth = a.every
	}
	return a
}

// hits counts a call and says whether the fault is played at it.
func (a *armedFault) hits(worker int) bool {
	if a.worker != anyWorker && a.worker != worker {
		return false
	}
	a.seen++
	if a.seen < a.nth || (a.seen-a.nth)%a.every != 0 || a.times > 0 && a.fired == a.times {
		return false
	}
	a.fired++
	return true
}

// decide counts one call of a place and returns the fault that takes its place, if any, and the delay before.
func (s *faultSet) decide(worker int, place string) (instead *armedFault, delay time.Duration) {
	at := s.at[place]
	if len(at) == 0 {
		return nil, 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range at {
		if !a.hits(worker) {
			continue
		}
		delay += a.delay
		if instead == nil && (a.answers || a.traps || a.outOfMemory) {
			instead = a
		}
	}
	return instead, delay
}

// play carries out what is in force at a place. The fault returned, if any, traps or answers, which is the caller's to do.
func (s *faultSet) play(v *vm, place string) *armedFault {
	a, delay := s.decide(v.worker, place)
	if delay > 0 {
		v.host.pass(delay)
	}
	if a != nil && a.outOfMemory {
		v.starved = s
	}
	return a
}

// fault plays what is in force at a host function, and says whether that has answered in place of the call.
func (b *binding) fault(v *vm, s *faultSet, stack []uint64) bool {
	switch a := s.play(v, b.label); {
	case a == nil || a.outOfMemory:
		return false
	case a.traps:
		panic(fmt.Errorf("%s: %w", b.label, errInjected))
	default:
		stack[0] = uint64(a.answer)
		return true
	}
}

// fault plays what is in force at an export. An allocator that is out of memory answers null at once.
func (v *vm) fault(e *export, s *faultSet) (null bool, err error) {
	switch a := s.play(v, e.name); {
	case a == nil:
		return false, nil
	case a.traps:
		return false, fmt.Errorf("%s: %w", e.name, errInjected)
	default:
		return e == v.allocator, nil
	}
}

// pass lets time go by on the host's clock.
func (h *Host) pass(d time.Duration) {
	if c, ok := h.clock.(*VirtualClock); ok {
		c.Advance(d)
		return
	}
	time.Sleep(d)
}
