package hostsim

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrUnexplored means that Explore stopped before it had seen every interleaving.
	ErrUnexplored = errors.New("hostsim: not every interleaving was run")
	// ErrNotRepeatable means that the same choices led elsewhere: a function depends on more than its worker.
	ErrNotRepeatable = errors.New("hostsim: a schedule cannot be repeated")
)

const (
	// DefaultScheduleLimit is Exploration.Limit's default.
	DefaultScheduleLimit = 100_000
	// DefaultStepLimit is Exploration.StepLimit's default.
	DefaultStepLimit = 10_000
)

// Exploration says what Host.Explore runs.
type Exploration struct {
	// Scenario is what runs at the same time.
	Scenario
	// Before runs ahead of each schedule, on a host that has been set back: for the test's own variables, and for steps
	// that come before those that race. Nil does nothing.
	Before func()
	// Check judges what a schedule has left behind. Nil finds fault with nothing but panics.
	Check func(Played) error
	// Limit bounds the schedules, run and pruned. Zero means DefaultScheduleLimit.
	Limit int
	// StepLimit bounds the steps of one schedule. Zero means DefaultStepLimit.
	StepLimit int
	// Unpruned runs every interleaving instead of one of each class of equal ones.
	Unpruned bool
}

// Explored says how far an exploration came.
type Explored struct {
	// Schedules is the number of those that ran to their end and were checked.
	Schedules int
	// Pruned is the number of those that were given up on the way, for they could only repeat an earlier one.
	Pruned int
	// Steps is the number of steps of the longest schedule.
	Steps int
}

// String is a line for a test's log.
func (e Explored) String() string {
	return fmt.Sprintf("%d schedules of up to %d steps run, %d given up as repetitions", e.Schedules, e.Steps, e.Pruned)
}

// ScheduleError is the first schedule that failed. It unwraps to what Check returned; where a function panicked, to an
// error of that text.
type ScheduleError struct {
	// Played is the schedule: Host.Play with its Choices, from the same state, repeats it.
	Played
	// Err is what was wrong.
	Err error
}

// Error has what was wrong, the choices and the steps, one a line.
func (e *ScheduleError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\nchoices %v", e.Err, e.Choices)
	for _, a := range e.Accesses {
		fmt.Fprintf(&b, "\n  %v", a)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *ScheduleError) Unwrap() error { return e.Err }

// Explore runs a scenario under every interleaving of its steps that could end differently, and checks each end. Before
// each schedule it sets the host back to the state in which it was called, which must have no open streams
// (ErrSnapshot). It returns nil when all interleavings have passed, with the host set back once more: what Check says
// then holds of every one. Else it stops at the first that fails and returns a *ScheduleError, with the host as that
// schedule left it; or ErrUnexplored where a limit was reached, or ErrNotRepeatable.
//
// Two interleavings are equal when one becomes the other by exchanging neighbouring steps of different workers that do
// not conflict (Access.Conflicts): such an exchange changes no answer of a host call and no final state, so one of each
// class is enough (Godefroid, Partial-Order Methods for the Verification of Concurrent Systems, LNCS 1032, 1996).
// Explore finds one of each by dynamic partial-order reduction (Flanagan and Godefroid, POPL 2005) in the form that has
// been proven to go together with sleep sets (Abdulla, Aronis, Jonsson and Sagonas, POPL 2014, algorithm 1: source
// sets). Some things do depend on the order of steps that do not conflict, and neither plugin nor check may look at
// them: the order of log entries of different workers, which of two writes to different keys has the higher number
// (cas), and counts of a Fault that is not of one worker alone. Time stands still. The cost is one run, some 100
// microseconds and what it takes to compare and copy the memory of each virtual machine that took part, for each
// schedule.
func (h *Host) Explore(x Exploration) (Explored, error) {
	start, err := h.Snapshot()
	if err != nil {
		return Explored{}, err
	}
	if x.Limit == 0 {
		x.Limit = DefaultScheduleLimit
	}
	if x.StepLimit == 0 {
		x.StepLimit = DefaultStepLimit
	}
	e := &explorer{unpruned: x.Unpruned}
	var done Explored
	for {
		if done.Schedules+done.Pruned == x.Limit {
			return done, fmt.Errorf("%w: the limit is %d schedules", ErrUnexplored, x.Limit)
		}
		if err := h.Restore(start); err != nil {
			return done, err
		}
		if x.Before != nil {
			x.Before()
		}
		played, err := h.explored(e, &x)
		done.Steps = max(done.Steps, len(played.Accesses))
		if err == nil && e.asleep {
			done.Pruned++
		} else {
			done.Schedules++
			if err == nil && x.Check != nil {
				err = x.Check(played)
			}
		}
		if err != nil {
			return done, &ScheduleError{Played: played, Err: err}
		}
		if !e.next() {
			return done, h.Restore(start)
		}
	}
}

// explored runs one schedule.
func (h *Host) explored(e *explorer, x *Exploration) (p Played, err error) {
	h.advancing.Lock()
	defer h.advancing.Unlock()
	e.begin()
	s := h.newSchedule(&x.Scenario)
	defer func() {
		p = s.played()
		if r := recover(); r != nil && err == nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	h.play(s, func(ready []*player) *player {
		if len(s.choices) == x.StepLimit {
			s.abandoned = true
			err = cmp.Or(err, fmt.Errorf("%w: a schedule has more than %d steps", ErrUnexplored, x.StepLimit))
		}
		if err != nil {
			return ready[0] // until all are done
		}
		var p *player
		if p, err = e.choose(ready); err != nil {
			return ready[0]
		}
		return p
	})
	return p, err
}
