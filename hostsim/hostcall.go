package hostsim

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"
)

// phase restricts what a module may call. Source: proxy-wasm-cpp-host, setRestrictedCallback.
type phase uint8

const (
	phaseRun   phase = iota // any callback
	phaseStart              // _initialize, main, _start
	phaseAlloc              // malloc, proxy_on_memory_allocate
)

func (p phase) String() string {
	switch p {
	case phaseStart:
		return "start-up"
	case phaseAlloc:
		return "memory allocation"
	}
	return "a callback"
}

// binding is a host function as code links it: with its place in the counters and its legal phases.
type binding struct {
	label  string // module.name, as in Counters
	fn     *hostFunc
	index  int
	legal  [3]bool // by phase
	params []param // named, for recordings
	touch  touch   // nil for a call that touches nothing that workers share
}

// newBinding takes a function that no table has, or has with other types, for unknown.
func newBinding(im *Import, index int, p *Profile) *binding {
	fn := findHostFunc(im.Module, im.Name)
	var params []param
	if fn != nil && im.matches(fn) {
		params = parseParams(fn.params)
	} else {
		fn, params = unknownFunc(im), unnamedParams(im.params)
	}
	b := &binding{label: im.Module + "." + im.Name, fn: fn, index: index, params: params}
	if im.Module == moduleEnv {
		b.touch = touches[fn.name]
	}
	b.legal = [3]bool{
		phaseRun:   true,
		phaseStart: p.StartCalls == nil || slices.Contains(p.StartCalls, fn.name),
		phaseAlloc: p.AllocCalls == nil || slices.Contains(p.AllocCalls, fn.name),
	}
	return b
}

// OnHostCall installs a function that is asked before each call of a host function that answers the module, such as
// env.proxy_get_shared_data, on the worker's goroutine. If instead is true the call does nothing and answers that status:
// a fault of the gateway, or with StatusOK an answer that was never written. A WASI function takes it as its errno. Nil
// removes the function. It is for faults that depend on what a test sees; InjectFaults takes the others as data, and comes
// first.
func (h *Host) OnHostCall(f func(worker int, name string) (answer Status, instead bool)) {
	if f == nil {
		h.callHook.Store(nil)
		return
	}
	h.callHook.Store(&f)
}

// run is what wazero calls: the one way from a module into its host. In a replay the recording answers.
func (b *binding) run(ctx context.Context, mod api.Module, stack []uint64) {
	v := ctx.(*vmContext).vm
	if v.mem == nil {
		v.mem = mod.Memory() // the module is starting
	}
	switch {
	case v.played != nil:
		v.played.call(b, stack)
	case v.rec != nil:
		v.rec.call(b, stack)
	default:
		b.perform(v, stack)
	}
}

// perform makes a call: counts it, refuses it out of its phase, lets other workers go first, plays what faults are in
// force, carries it out unless one has answered, and counts the answer. Parameters and result share the stack; upper
// halves of i32 parameters may hold anything.
func (b *binding) perform(v *vm, stack []uint64) {
	v.hostCalls[b.index]++
	if b.fn.call == nil {
		v.unimplemented[b.index]++
	}
	if !b.legal[v.phase] {
		panic(fmt.Errorf("%s is not allowed during %s", b.label, v.phase))
	}
	step := b.giveWay(v, stack)
	if f := v.host.faults.Load(); f == nil || !b.fault(v, f, stack) {
		b.carryOut(v, stack)
	}
	if !b.fn.void {
		v.answers[b.index][min(uint32(stack[0]), answersCounted-1)]++
		step.answered(stack)
	}
}

// carryOut has the caller's hook answer or else the function.
func (b *binding) carryOut(v *vm, stack []uint64) {
	if f := v.host.callHook.Load(); f != nil && !b.fn.void {
		if st, instead := (*f)(v.worker, b.label); instead {
			stack[0] = uint64(st)
			return
		}
	}
	answer := uint32(StatusUnimplemented)
	if b.fn.call != nil {
		answer = b.fn.call(v, stack)
	}
	if !b.fn.void {
		stack[0] = uint64(answer)
	}
}
