package hostsim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
)

// checkVM is one virtual machine that a recording plays to. It runs as a coroutine: whenever it needs its next line it gives
// way to the reader, so that lines are compared in the order of the file.
type checkVM struct {
	c     *checker
	v     *vm
	begun *recordedLine // its first line

	proceed func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	in      *recordedLine
	err     error // the difference, or what is wrong with the recording

	ahead    *recordedLine // read, not yet used
	nested   [][]recordedLine
	callback *recordedLine // running
	// skipAllocation is set while a host call is answered in which a fault took the allocator's place.
	skipAllocation bool
	clocks         map[uint64]uint64
}

var errStopped = errors.New("hostsim: the replay has stopped")

func newCheckVM(c *checker, begun *recordedLine) *checkVM {
	m := &checkVM{c: c, begun: begun, clocks: map[uint64]uint64{}}
	m.v = &vm{host: c.host, program: c.host.program.Load(), worker: begun.Worker, contexts: map[uint32]*guestContext{}}
	m.v.ctx = &vmContext{Context: c.ctx, vm: m.v}
	m.v.played = m
	var seed [32]byte
	fillSeed(&seed, c.in.header.Seed, begun.Worker, begun.Generation)
	m.v.rng = rand.NewChaCha8(seed)
	m.proceed, m.stop = iter.Pull(func(yield func(struct{}) bool) {
		m.yield = yield
		m.run()
	})
	return m
}

// resume hands over a line, nil at first, and lets the virtual machine run until it needs the next one.
func (m *checkVM) resume(l *recordedLine) error {
	m.in = l
	_, more := m.proceed()
	if m.err == nil && !more && (l == nil || l.Kind != kindVMEnd) {
		m.err = m.c.in.errorf("virtual machine %d goes on after its end", *m.begun.VM)
	}
	return m.err
}

// run plays the whole life of the virtual machine.
func (m *checkVM) run() {
	defer func() {
		if p := recover(); p != nil && p != any(errStopped) {
			panic(p)
		}
	}()
	v := m.v
	starting := &vmContext{Context: experimental.WithMemoryAllocator(v.ctx.Context, &linearMemory{v: v}), vm: v}
	mod, err := v.program.runtime.InstantiateModule(starting, v.program.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if m.err != nil {
		return
	}
	if err == nil {
		v.mod, v.mem = mod, mod.Memory()
		defer mod.Close(context.Background())
		v.bind()
	}
	for m.err == nil {
		l := m.next()
		switch {
		case l.Kind == kindVMEnd:
			m.finish(l)
			return
		case l.Kind != kindCallback:
			m.differ(l.expected(), "waits for a callback")
		case err != nil:
			m.differ(l.expected(), "does not instantiate: "+trapText(err.Error()))
		}
		m.play(l)
	}
}

// finish compares the memory that is left behind.
func (m *checkVM) finish(l *recordedLine) {
	if !m.c.strict || len(m.c.in.header.Redacted) > 0 || l.MemorySHA256 == "" {
		return
	}
	size, sum := memoryDigest(m.v.mem)
	if size != l.MemorySize || sum != l.MemorySHA256 {
		m.differ(fmt.Sprintf("a memory of %d bytes with SHA-256 %s", l.MemorySize, l.MemorySHA256),
			fmt.Sprintf("left %d bytes with SHA-256 %s", size, sum))
	}
	m.c.report.Memories++
}

// play calls one callback and compares its end.
func (m *checkVM) play(l *recordedLine) {
	args, err := l.callbackArgs()
	if err != nil {
		m.fail(m.c.in.errorf("%w", err))
	}
	e := m.export(l.Name)
	if e == nil {
		m.differ(l.expected(), "does not export "+l.Name)
	}
	outer := m.callback
	m.callback = l
	depth := len(m.nested)
	result, err := m.v.enter(e, args)
	if m.err != nil {
		panic(errStopped)
	}
	if late := m.c.ctx.Err(); late != nil {
		m.fail(late)
	}
	m.nested, m.skipAllocation = m.nested[:depth], false // where it has trapped inside a host call
	end := m.next()
	if end == nil {
		m.fail(m.c.in.errorf("callback %s inside a host call has no end", clip(l.Name)))
	}
	got := returned(e, result, err)
	if end.Kind != kindEnd {
		m.differ(end.expected(), got)
	}
	want := end.expected()
	if end.Trap != nil && err != nil {
		want = got // traps are worded by the engine
	}
	if got != want {
		m.differ(want, got)
	}
	m.callback = outer
}

func returned(e *export, result uint64, err error) string {
	switch {
	case err != nil:
		return "traps: " + trapText(err.Error())
	case e.results > 0:
		return "returns " + strconv.FormatUint(uint64(uint32(result)), 10)
	}
	return "returns"
}

func (m *checkVM) export(name string) *export {
	for _, e := range m.v.all {
		if e.name == name {
			return e
		}
	}
	return nil
}

// expected is the line as a difference shows it.
func (l *recordedLine) expected() string {
	switch l.Kind {
	case kindCallback:
		return "callback " + l.Name + string(l.Args)
	case kindCall:
		return "host call " + l.Name + " " + string(l.Args)
	case kindEnd:
		switch {
		case l.Trap != nil:
			return "traps: " + *l.Trap
		case l.Result != nil:
			return "returns " + strconv.FormatUint(*l.Result, 10)
		}
		return "returns"
	}
	return "the end of the virtual machine"
}

// differ ends the check with a difference at the line last read.
func (m *checkVM) differ(expected, got string) {
	d := &Difference{Line: m.c.in.line, Worker: m.begun.Worker, Generation: m.begun.Generation, Expected: expected, Got: got}
	if m.callback != nil {
		d.Callback = m.callback.Name
		d.Context = m.callback.Context
	}
	m.fail(d)
}

// fail unwinds the module.
func (m *checkVM) fail(err error) {
	m.err = err
	panic(errStopped)
}

// next is the next line for this virtual machine. Within a host call it comes from that call's own line, nil at its end.
// Lines about a runtime's own needs are passed over where another build may have others.
func (m *checkVM) next() *recordedLine {
	for {
		l := m.peek()
		if l == nil {
			return nil
		}
		m.drop()
		if m.c.strict || l.Kind != kindCall || !ownNeed(l.Name) {
			return l
		}
		m.noteClock(l)
	}
}

// peek is the next line without using it up.
func (m *checkVM) peek() *recordedLine {
	if n := len(m.nested); n > 0 {
		if len(m.nested[n-1]) == 0 {
			return nil
		}
		return &m.nested[n-1][0]
	}
	if m.ahead == nil {
		if m.in == nil && !m.yield(struct{}{}) {
			panic(errStopped)
		}
		m.ahead, m.in = m.in, nil
	}
	return m.ahead
}

// drop uses up what peek has shown.
func (m *checkVM) drop() {
	if n := len(m.nested); n > 0 {
		m.nested[n-1] = m.nested[n-1][1:]
		return
	}
	m.ahead = nil
}

// ownNeed is true for what a language runtime calls for itself: all of WASI but writing.
func ownNeed(label string) bool {
	return label == memoryGrow || strings.HasPrefix(label, "wasi_") && !strings.HasSuffix(label, ".fd_write") && !strings.HasSuffix(label, ".fd_pwrite") &&
		!strings.HasSuffix(label, ".proc_exit")
}

// starved says whether the recorded module's memory was kept from growing at this point.
func (m *checkVM) starved(size uint64) bool {
	if m.err != nil || m.v.mod == nil {
		return false // it is being instantiated, and the line would stand between two of its own
	}
	l := m.peek()
	if l == nil || l.Kind != kindCall || l.Name != memoryGrow || !m.sameArgs(l.Args, fmt.Appendf(nil, `{"bytes":%d}`, size)) {
		return false
	}
	m.drop()
	return true
}

// call compares a host call with the recording and answers it.
func (m *checkVM) call(b *binding, stack []uint64) {
	if m.err != nil {
		panic(errStopped)
	}
	if m.c.ctx.Err() != nil {
		m.fail(m.c.ctx.Err())
	}
	args := appendArgs(nil, m.v, b.params, stack, nil)
	var l *recordedLine
	if !m.c.strict && ownNeed(b.label) {
		l = m.peek()
		if l == nil || l.Kind != kindCall || l.Name != b.label || !m.sameArgs(l.Args, args) {
			m.invent(b, stack)
			return
		}
		m.drop()
		m.noteClock(l)
	} else {
		if l = m.peek(); l != nil && l.Kind == kindEnd && l.Deadline {
			panic(sys.NewExitError(sys.ExitCodeDeadlineExceeded)) // it had got this far when its time was over
		}
		l = m.next()
	}
	got := "calls " + b.label + " " + string(args)
	if l == nil {
		m.differ("no host call inside this one", got)
	}
	if l.Kind != kindCall || l.Name != b.label || !m.sameArgs(l.Args, args) {
		m.differ(l.expected(), got)
	}
	m.answer(b, l, append([]uint64(nil), stack...), stack)
}
