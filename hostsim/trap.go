package hostsim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// TrapError says how a virtual machine died. It wraps ErrTrap; ErrDeadline, ErrMemory or ErrStack where one of them is the
// reason; and the error underneath.
type TrapError struct {
	// Worker is the worker's index, MainThread or Canary.
	Worker int
	// Export is the function of the module that ran, such as proxy_on_tick, or "the start section".
	Export string
	// Reason is what happened, in one line.
	Reason string
	// Stack has the module's functions that were running, innermost first, as name(parameter types): 30 at most. A module
	// that was built without names shows numbers such as $17. It is empty where nothing of the module ran.
	Stack []string

	kind  error // ErrDeadline, ErrMemory, ErrStack or nil
	cause error
}

// Error is one line for the reason and one for each function of the stack.
func (e *TrapError) Error() string {
	text := fmt.Sprintf("%v in %s %s: %s", ErrTrap, e.Export, onThread(e.Worker), e.Reason)
	for _, frame := range e.Stack {
		text += "\n\tin " + frame
	}
	return text
}

// Unwrap returns ErrTrap and what is known of the reason.
func (e *TrapError) Unwrap() []error {
	out := []error{ErrTrap, e.cause}
	if e.kind != nil {
		out = append(out, e.kind)
	}
	return out
}

func onThread(worker int) string {
	switch worker {
	case MainThread:
		return "on the main thread"
	case Canary:
		return "in the canary"
	}
	return fmt.Sprintf("on worker %d", worker)
}

// trapped explains an error of wazero's.
func (v *vm) trapped(export string, err error) error {
	e := &TrapError{Worker: v.worker, Export: export, cause: err}
	reason, stack := splitTrace(err)
	e.Reason, e.Stack = reason, stack
	var exit *sys.ExitError
	var broken runtime.Error
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == sys.ExitCodeDeadlineExceeded:
		e.kind, e.Reason = ErrDeadline, fmt.Sprintf("ran longer than %v", v.host.config.CallTimeout)
	case v.refused != nil:
		e.kind, e.Reason = ErrMemory, v.refused.Error()+", then: "+reason
	case errors.Is(err, errReentered):
		e.kind = ErrStack
	case errors.Is(err, stackOverflow()):
		e.kind, e.Reason = ErrStack, "called itself until the stack was exhausted"
	case errors.As(err, &broken):
		e.Reason = "a host function failed, which is a fault of hostsim: " + err.Error()
	}
	return e
}

// splitTrace takes wazero's text apart: what happened, and in which functions of the module. A trap within a trap, as of
// malloc in a host call, has one trace each, the inner one first.
func splitTrace(err error) (reason string, stack []string) {
	parts := strings.Split(err.Error(), "\nwasm stack trace:\n\t")
	reason = strings.NewReplacer(" (recovered by wazero)", "", "wasm error: ", "").Replace(parts[0])
	for _, trace := range parts[1:] {
		trace, _, _ = strings.Cut(trace, "\n\n")
		for line := range strings.SplitSeq(strings.TrimSuffix(trace, " (recovered by wazero)"), "\n\t") {
			stack = append(stack, strings.TrimPrefix(line, "."))
		}
	}
	return reason, stack
}

// stackOverflow is wazero's error for an exhausted stack, which it does not export: taken from a function that calls
// itself, in the interpreter, whose stack is shallow.
var stackOverflow = sync.OnceValue(func() error {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { _ = rt.Close(ctx) }()
	mod, err := rt.Instantiate(ctx, []byte("\x00asm\x01\x00\x00\x00"+
		"\x01\x04\x01\x60\x00\x00"+ // type 0: () -> ()
		"\x03\x02\x01\x00"+ // function 0 of type 0
		"\x07\x05\x01\x01f\x00\x00"+ // exported as f
		"\x0a\x06\x01\x04\x00\x10\x00\x0b")) // call 0
	if err != nil {
		panic(err) // the bytes above are a module
	}
	_, err = mod.ExportedFunction("f").Call(ctx)
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
})
