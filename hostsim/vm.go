package hostsim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// vmContext is the context of every call into one virtual machine; host functions find it there.
type vmContext struct {
	context.Context
	vm *vm
}

// guestContext is what the module knows by a context id: a plugin configuration or a stream.
type guestContext struct {
	id     uint32
	root   *root
	stream *Stream     // nil for all but HTTP streams
	conn   *Connection // nil for all but connections
}

// isRoot is true for a plugin's own context.
func (c *guestContext) isRoot() bool { return c == &c.root.guestContext }

// vm is one instance of the module. Its worker's lock guards it.
//
//  1. current is the context of the callback that runs, nil between callbacks; effective takes its place in host calls, from
//     proxy_set_effective_context to the end of the callback.
//  2. When dead is set, mod is nil, pending is empty and nothing is called any more.
//  3. In phaseRun no start function and no allocator runs.
type vm struct {
	host    *Host
	program *program
	worker  int
	ctx     *vmContext
	timed   *vmContext // of the call that runs, with Config.CallTimeout
	rng     *rand.ChaCha8

	// The instance. mod is nil before it is there and after its end.
	mod     api.Module
	mem     api.Memory
	globals []api.MutableGlobal // the module's own that change
	callbacks
	allocator  *export
	all        []*export
	lastMemory uint64 // of mem, once it has gone

	// What the module has made itself.
	contexts map[uint32]*guestContext
	nextID   uint32
	roots    []*root    // the last one is in force
	lastCall [3]uint32  // id of the last call-out, by calloutKind; 0 before the first
	stats    [3][]*stat // by metric type, in order of definition
	lastMono time.Duration

	// The call that runs.
	phase     phase
	current   *guestContext
	effective *guestContext
	pending   []action
	callData  []byte    // the argument of proxy_on_foreign_function, during it
	stopped   bool      // a local reply overrides the answer of the callback that sent it
	reentered int       // calls to an export that runs already, under way
	starved   *faultSet // while it is in force, the memory does not grow
	refused   error     // why the memory last did not grow

	dead   error
	diedAt time.Duration // monotonic

	// Who watches.
	hostCalls     []uint64 // by binding
	unimplemented []uint64
	answers       []answerCounts // by binding
	rec           *vmRecord      // nil unless recorded
	played        *checkVM       // nil but in Check
	at            *vmSnapshot    // what memory and globals are equal to, or nil
}

// newVM instantiates the module and runs its start functions. generation tells instances of one worker apart, so that
// each has its own random numbers.
func (h *Host) newVM(p *program, worker int, generation uint64) (*vm, error) {
	v := &vm{
		host: h, program: p, worker: worker,
		contexts:      map[uint32]*guestContext{},
		hostCalls:     make([]uint64, len(p.bindings)),
		unimplemented: make([]uint64, len(p.bindings)),
		answers:       make([]answerCounts, len(p.bindings)),
		nextID:        1,
	}
	v.ctx = &vmContext{Context: context.Background(), vm: v}
	v.rec = h.recordVM(v, generation)
	var seed [32]byte
	fillSeed(&seed, h.config.Seed, worker, generation)
	v.rng = rand.NewChaCha8(seed)

	if err := v.instantiate(); err != nil {
		return nil, err
	}
	v.phase = phaseStart
	defer func() { v.phase = phaseRun }()
	if err := v.runStart(); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

// instantiate makes an instance of the module, without its start functions.
func (v *vm) instantiate() error {
	v.phase = phaseStart
	defer func() { v.phase = phaseRun }()
	ctx, done := v.limited()
	starting := &vmContext{Context: experimental.WithMemoryAllocator(ctx.Context, &linearMemory{v: v}), vm: v}
	mod, err := v.program.runtime.InstantiateModule(starting, v.program.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	done()
	if err != nil {
		v.endRecord()
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // without wazero's words about the function's number
		}
		return v.trapped("the start section", err)
	}
	v.mod, v.mem, v.globals = mod, mod.Memory(), v.globals[:0]
	for _, i := range v.program.globals {
		v.globals = append(v.globals, mod.ExportedGlobal(globalExport(i)).(api.MutableGlobal))
	}
	v.bind()
	return nil
}

// runStart calls what initialises the module. Source: proxy-wasm-cpp-host, WasmBase::startVm.
func (v *vm) runStart() error {
	steps := []*export{v.initialize, v.main}
	if v.initialize == nil {
		steps = []*export{v.start}
	}
	for _, e := range steps {
		if e == nil {
			continue
		}
		if _, err := v.invoke(e, make([]uint64, e.params)...); err != nil {
			return v.trapped(e.name, err)
		}
	}
	return nil
}

func (v *vm) close() {
	for _, r := range v.roots {
		r.dropGRPC()
	}
	if v.mod != nil {
		v.lastMemory = v.memory()
		v.endRecord()
		_ = v.mod.Close(v.ctx)
		v.mod = nil
	}
}

func (v *vm) memory() uint64 {
	if v.mod == nil || v.mem == nil {
		return v.lastMemory
	}
	return uint64(v.mem.Size())
}

// maxReentered bounds how deep a module may call itself by way of host functions, such as malloc by proxy_get_property in
// malloc under a profile that lets it: each such call takes a piece of the process's own stack.
const maxReentered = 64

var errReentered = fmt.Errorf("it was called by a host function that it called itself, %d deep", maxReentered)

// invoke calls an export and returns its first result, or 0.
func (v *vm) invoke(e *export, args ...uint64) (uint64, error) {
	e.calls++
	if f := v.host.faults.Load(); f != nil {
		if null, err := v.fault(e, f); null || err != nil {
			v.rec.skipped(e)
			return 0, err
		}
	}
	if v.rec != nil && e != v.allocator {
		v.rec.begin(e, args)
		result, err := v.enter(e, args)
		v.rec.end(e, result, err)
		return result, err
	}
	return v.enter(e, args)
}

// enter runs the module.
func (v *vm) enter(e *export, args []uint64) (uint64, error) {
	v.at = nil
	stack, fn := e.stack, e.fn
	if e.busy {
		// The export runs already, further down: its call engine must not be entered twice.
		if v.reentered == maxReentered {
			return 0, errReentered
		}
		v.reentered++
		defer func() { v.reentered-- }()
		stack, fn = make([]uint64, len(e.stack)), v.mod.ExportedFunction(e.name)
	} else {
		e.busy = true
		defer func() { e.busy = false }()
	}
	copy(stack, args)
	ctx := v.ctx
	if v.host.config.CallTimeout > 0 {
		limited, done := v.limited()
		defer done()
		ctx = limited
	}
	if err := fn.CallWithStack(ctx, stack); err != nil {
		return 0, err
	}
	if e.results == 0 {
		return 0, nil
	}
	return stack[0], nil
}

// callback calls an export in the name of c, then does what the module asked to be done afterwards. When the module traps
// the virtual machine is dead and the error wraps ErrTrap.
func (v *vm) callback(c *guestContext, e *export, args ...uint64) (uint64, error) {
	if v.dead != nil {
		return 0, v.dead
	}
	outerCurrent, outerEffective := v.current, v.effective
	v.current, v.effective = c, nil
	v.stopped, v.refused = false, nil
	result, err := v.invoke(e, args...)
	v.current, v.effective = outerCurrent, outerEffective
	if err != nil {
		v.die(v.trapped(e.name, err))
		return 0, v.dead
	}
	return result, nil
}

// die ends the virtual machine. wazero would go on calling it; a gateway does not.
func (v *vm) die(err error) {
	v.dead, v.diedAt = err, v.host.clock.Monotonic()
	clear(v.pending)
	v.pending = v.pending[:0]
	v.host.log(v.worker, LogCritical, err.Error())
	for _, c := range v.contexts {
		if c.stream != nil {
			c.stream.wakeUp() // to learn that it has failed
		}
		if c.conn != nil {
			c.conn.wakeUp()
		}
	}
	v.close()
}

// target is the context that a host call is about.
func (v *vm) target() *guestContext {
	if v.effective != nil {
		return v.effective
	}
	return v.current
}

// stream is the stream that a host call is about, or nil.
func (v *vm) stream() *Stream {
	if c := v.target(); c != nil {
		return c.stream
	}
	return nil
}

// conn is the connection that a host call is about, or nil.
func (v *vm) conn() *Connection {
	if c := v.target(); c != nil {
		return c.conn
	}
	return nil
}

// newContext registers a context under the next free id. Source: proxy-wasm-cpp-host, WasmBase::allocContextId.
func (v *vm) newContext(c *guestContext) {
	for {
		id := v.nextID
		v.nextID++
		if _, taken := v.contexts[id]; !taken && id != 0 {
			c.id = id
			v.contexts[id] = c
			return
		}
	}
}

// monotonic is the module's monotonic clock. See monotonicStep.
func (v *vm) monotonic() time.Duration {
	now := v.host.clock.Monotonic()
	if now <= v.lastMono {
		now = v.lastMono + monotonicStep
	}
	v.lastMono = now
	return now
}
