package hostsim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrFault is wrapped by every error that Fault.Validate and Host.InjectFaults report.
var ErrFault = errors.New("hostsim: invalid fault")

// Fault is something that goes wrong in the gateway around a plugin, as plain data: at which call, in which virtual
// machine, at which of its calls, and what. JSON and YAML have the same fields under the names in the tags.
//
//	{"at": "env.proxy_get_shared_data", "nth": 2, "answer": "INTERNAL_FAILURE"}
//	{"at": "proxy_on_tick", "worker": "main", "trap": true}
type Fault struct {
	// At names a host function as module.name, such as env.proxy_get_shared_data, or a function that the module exports,
	// such as proxy_on_tick or malloc. FaultPlaces lists them all. Required.
	At string `json:"at"`
	// Worker is any, main, canary, or a worker's number. Empty means any.
	Worker string `json:"worker,omitempty"`
	// Nth is the first call that is hit, counted from 1 over all virtual machines that Worker covers, from the moment
	// that the fault is injected. Zero means 1.
	Nth int `json:"nth,omitempty"`
	// Every hits each call of that distance from the Nth on, or from the call number Every where Nth is zero. Zero means 1.
	Every int `json:"every,omitempty"`
	// Times is how often the fault is played. Zero means once where Nth is given without Every, and else without end.
	Times int `json:"times,omitempty"`

	// Answer is a host function's answer in place of the call: a status by name, such as CAS_MISMATCH, or a number, such
	// as a WASI errno. OK without the call leaves unwritten what the call would have written.
	Answer string `json:"answer,omitempty"`
	// Trap kills the virtual machine: in the host function, or in place of the export's first instruction.
	Trap bool `json:"trap,omitempty"`
	// OutOfMemory makes an allocator (malloc, proxy_on_memory_allocate) answer null without running. At any other place
	// it keeps the module's memory from growing, in that virtual machine, until InjectFaults is called again.
	OutOfMemory bool `json:"out_of_memory,omitempty"`
	// Delay is how much time the call takes on the host's clock, as a Go duration such as 250ms, before anything else
	// that the fault does. A VirtualClock moves on and fires nothing meanwhile; on any other clock the worker sleeps.
	Delay string `json:"delay,omitempty"`
}

// Validate reports the first thing that is wrong with f, in one line that names what is allowed. The error wraps ErrFault.
func (f *Fault) Validate() error {
	if err := f.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrFault, err)
	}
	return nil
}

func (f *Fault) check() error {
	for _, check := range []func() error{f.checkAt, f.checkWorker, f.checkCounts, f.checkEffect} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fault) checkAt() error {
	switch {
	case f.At == "":
		return errors.New("at is missing: a host function as module.name, such as env.proxy_get_shared_data, or an export such as proxy_on_tick")
	case !slices.Contains(FaultPlaces(), f.At):
		return fmt.Errorf("at: there is no %q, the nearest name is %s", f.At, nearest(f.At, FaultPlaces()))
	}
	return nil
}

func (f *Fault) checkWorker() error {
	if _, err := f.worker(); err != nil {
		return fmt.Errorf("worker: %q is none of any, main, canary, 0 to 255", f.Worker)
	}
	return nil
}

func (f *Fault) checkCounts() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"nth", f.Nth}, {"every", f.Every}, {"times", f.Times}} {
		if n.value < 0 {
			return fmt.Errorf("%s: %d is negative, allowed are 1 and more", n.name, n.value)
		}
	}
	return nil
}

func (f *Fault) checkEffect() error {
	effects := 0
	for _, given := range []bool{f.Answer != "", f.Trap, f.OutOfMemory} {
		if given {
			effects++
		}
	}
	switch {
	case effects > 1:
		return fmt.Errorf("%s has more than one of answer, trap, out_of_memory: give one", f.At)
	case effects == 0 && f.Delay == "":
		return fmt.Errorf("%s does nothing: give answer, trap, out_of_memory or delay", f.At)
	}
	if _, err := f.delay(); err != nil {
		return fmt.Errorf("delay: %q is not a duration of 0 or more, such as 250ms", f.Delay)
	}
	if f.Answer == "" {
		return nil
	}
	module, name, called := strings.Cut(f.At, ".")
	if !called || findHostFunc(module, name).void {
		return fmt.Errorf("answer: %s gives no answer to the module: use trap, out_of_memory or delay", f.At)
	}
	if _, err := f.answer(); err != nil {
		return fmt.Errorf("answer: %q is neither a number nor a status of %s", f.Answer, strings.Join(statusNames[:], ", "))
	}
	return nil
}

// anyWorker is the index that stands for every virtual machine.
const anyWorker = -3

func (f *Fault) worker() (int, error) {
	switch f.Worker {
	case "", "any":
		return anyWorker, nil
	case "main":
		return MainThread, nil
	case "canary":
		return Canary, nil
	}
	n, err := strconv.ParseUint(f.Worker, 10, 8)
	return int(n), err
}

func (f *Fault) delay() (time.Duration, error) {
	if f.Delay == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(f.Delay)
	if err == nil && d < 0 {
		err = strconv.ErrRange
	}
	return d, err
}

func (f *Fault) answer() (uint32, error) {
	if i := slices.Index(statusNames[:], f.Answer); i >= 0 {
		return uint32(i), nil
	}
	n, err := strconv.ParseUint(f.Answer, 10, 32)
	return uint32(n), err
}

// FaultPlaces returns every name that Fault.At takes: the host functions of each module, then the exports.
func FaultPlaces() []string {
	var out []string
	for _, module := range []string{moduleEnv, moduleWASI, moduleWASIUnstable} {
		table := wasiFuncs
		if module == moduleEnv {
			table = envFuncs
		}
		for i := range table {
			out = append(out, module+"."+table[i].name)
		}
	}
	return append(out, callbackNames...)
}

// nearest is the name of the smallest edit distance.
func nearest(name string, names []string) string {
	best, least := "", len(name)+1000
	for _, candidate := range names {
		if d := editDistance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete or replace. O(len(a)*len(b)).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
