package hostsim

import (
	"fmt"
	"slices"
	"time"
)

// root is one plugin configuration in one virtual machine: the context that ticks and that streams belong to.
type root struct {
	guestContext
	config  []byte
	streams int // streams that began under it and have not ended
	reading bool
	drained bool // its drain time is over
	waiting bool // done answered false: proxy_done is awaited
	gone    bool

	calls  []*HTTPCall   // under way
	answer *HTTPResponse // the one that a callback is being told of

	grpcCalls []*GRPCCall // under way
	grpcEvent *grpcEvent  // the one that a callback is being told of

	status        uint32 // what proxy_get_status answers
	statusMessage string // only during the callback that it is about

	period time.Duration
	next   time.Duration // monotonic time of the next tick, where period is not 0
}

// addRoot gives the module a configuration: context_create, vm_start, configure, in an instance that may hold earlier
// ones. Source: proxy-wasm-cpp-host, ContextBase::onStart and onConfigure; that vm_start runs again for a new
// configuration in the same instance was seen on Envoy 1.36.4 and 1.40.0.
func (v *vm) addRoot(config []byte) error {
	r := &root{config: config}
	r.root = r
	v.newContext(&r.guestContext)
	if err := v.startRoot(r); err != nil {
		r.dropGRPC()
		delete(v.contexts, r.id)
		return err
	}
	v.roots = append(v.roots, r)
	return nil
}

func (v *vm) startRoot(r *root) error {
	// Not while vm_start runs. Source: proxy-wasm-cpp-host, ContextBase::onStart.
	r.reading = true
	err := v.tellCreate(&r.guestContext, 0)
	r.reading = false
	if err != nil {
		return err
	}
	if ok, err := v.ask(r, v.vmStart, len(v.program.vmConfig)); err != nil || !ok {
		return refused("proxy_on_vm_start", err)
	}
	r.reading = true
	defer func() { r.reading = false }()
	if ok, err := v.ask(r, v.configure, len(r.config)); err != nil || !ok {
		return refused("proxy_on_configure", err)
	}
	return nil
}

func refused(name string, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s returned false", ErrRefused, name)
}

// ask calls vm_start or configure. A module without it agrees.
func (v *vm) ask(r *root, e *export, size int) (bool, error) {
	if e == nil {
		return true, nil
	}
	result, err := v.callback(&r.guestContext, e, uint64(r.id), uint64(size))
	if v.settle(); err == nil {
		err = v.dead
	}
	return uint32(result) != 0, err
}

// tellCreate announces a context. parent is 0 for a plugin context.
func (v *vm) tellCreate(c *guestContext, parent uint32) error {
	if v.contextCreate == nil {
		return nil
	}
	_, err := v.callback(c, v.contextCreate, uint64(c.id), uint64(parent))
	return err
}

// current configuration's root.
func (v *vm) activeRoot() *root { return v.roots[len(v.roots)-1] }

// setPeriod starts or, with 0, stops a root's timer, which counts anew from here. Source: seen on Envoy 1.36.4 and 1.40.0.
func (v *vm) setPeriod(r *root, period time.Duration) {
	r.period = period
	if period > 0 {
		r.next = v.host.clock.Monotonic() + period
		v.host.wakeTicker()
	}
}

// tickDue fires the timer of r.
func (v *vm) tickRoot(r *root) {
	if v.tick != nil {
		_, _ = v.callback(&r.guestContext, v.tick, uint64(r.id))
		v.settle()
	}
	if r.period > 0 {
		r.next = v.host.clock.Monotonic() + r.period
	}
}

// nextTick is the root whose tick comes first, or nil.
func (v *vm) nextTick() *root {
	var first *root
	if v.dead != nil {
		return nil
	}
	for _, r := range v.roots {
		if r.period > 0 && (first == nil || r.next < first.next) {
			first = r
		}
	}
	return first
}

// drainRoots ends the drain time of these roots.
func (v *vm) drainRoots(roots []*root) {
	for _, r := range slices.Clone(roots) {
		r.drained = true
		v.retireRoot(r)
	}
}

// retireRoot says done and delete to a drained root that no stream uses any more. A done that answers false puts delete
// off until proxy_done.
func (v *vm) retireRoot(r *root) {
	if !r.drained || r.gone || r.waiting || r.streams > 0 || v.dead != nil {
		return
	}
	r.period = 0
	done := true
	if v.done != nil {
		result, err := v.callback(&r.guestContext, v.done, uint64(r.id))
		if err != nil {
			return
		}
		done = uint32(result) != 0
		v.settle()
	}
	if r.waiting = !done; done {
		v.removeRoot(r)
	}
}

func (v *vm) removeRoot(r *root) {
	if r.gone {
		return
	}
	r.gone = true
	if v.remove != nil {
		_, _ = v.callback(&r.guestContext, v.remove, uint64(r.id))
	}
	r.dropGRPC()
	delete(v.contexts, r.id)
	v.roots = slices.DeleteFunc(v.roots, func(x *root) bool { return x == r })
}
