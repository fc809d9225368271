package hostsim

import (
	"errors"
	"fmt"
)

// ErrDifference is what a *Difference unwraps to.
var ErrDifference = errors.New("hostsim: the module does not do what the recording says")

// Difference is the first place where a module leaves a recording.
type Difference struct {
	// Line is the recording's line, from 1.
	Line int `json:"line"`
	// Worker is the worker of the virtual machine, or MainThread or Canary, and Generation counts its virtual machines.
	Worker     int    `json:"worker"`
	Generation uint64 `json:"generation"`
	// Callback is the callback that ran, such as proxy_on_request_headers, or "" between callbacks and while starting.
	Callback string `json:"callback,omitempty"`
	// Context is the context that the callback was for.
	Context uint32 `json:"context,omitempty"`
	// Expected is what the recording says and Got what the module did, each one line of text.
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

// Error says it all in one line.
func (d *Difference) Error() string {
	return fmt.Sprintf("%v: line %d%s: expected %s, the module %s", ErrDifference, d.Line, d.Where(), clip(d.Expected), clip(d.Got))
}

// Where names the virtual machine and the callback.
func (d *Difference) Where() string {
	s := " (" + ThreadName(d.Worker)
	if d.Generation > 0 {
		s += fmt.Sprintf(", restart %d", d.Generation)
	}
	if d.Callback != "" {
		s += fmt.Sprintf(", in %s of context %d", d.Callback, d.Context)
	}
	return s + ")"
}

// Unwrap returns ErrDifference.
func (d *Difference) Unwrap() error { return ErrDifference }
