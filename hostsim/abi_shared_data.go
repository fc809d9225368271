package hostsim

// Functions on shared data.

// SharedOp is a kind of shared-data call.
type SharedOp uint8

const (
	// SharedGet is proxy_get_shared_data.
	SharedGet SharedOp = iota
	// SharedSet is proxy_set_shared_data.
	SharedSet
)

// String returns get or set.
func (op SharedOp) String() string {
	if op == SharedGet {
		return "get"
	}
	return "set"
}

// OnSharedData installs a function that runs before each shared-data call of a virtual machine, on its goroutine, and may
// block: a test can so hold one worker between its read and its write. It must not call into the worker that it is told
// of. Nil removes it.
func (h *Host) OnSharedData(f func(worker int, op SharedOp, key string)) {
	if f == nil {
		h.sharedHook.Store(nil)
		return
	}
	h.sharedHook.Store(&f)
}

// beforeShared runs the caller's hook.
func (h *Host) beforeShared(worker int, op SharedOp, key []byte) {
	if f := h.sharedHook.Load(); f != nil {
		(*f)(worker, op, string(key))
	}
}

func callGetSharedData(v *vm, a []uint64) Status {
	key, ok := v.read(a[0], a[1])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	v.host.beforeShared(v.worker, SharedGet, key)
	value, cas, found := v.host.shared.lookup(key)
	if !found {
		return StatusNotFound
	}
	if st := give(v, value, a[2], a[3]); st != StatusOK {
		return st
	}
	if !v.putU32(a[4], cas) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

func callSetSharedData(v *vm, a []uint64) Status {
	key, ok1 := v.read(a[0], a[1])
	value, ok2 := v.read(a[2], a[3])
	if !ok1 || !ok2 {
		return StatusInvalidMemoryAccess
	}
	v.host.beforeShared(v.worker, SharedSet, key)
	return v.host.shared.store(key, value, uint32(a[4]))
}
