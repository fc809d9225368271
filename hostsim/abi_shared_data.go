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

// SharedAccess is one shared-data call of an interleaved run.
type SharedAccess struct {
	// Worker is the index of the worker that made it.
	Worker int
	// Op is what it did, Key on what.
	Op  SharedOp
	Key string
	// Status is what it was answered.
	Status Status
}

func callGetSharedData(v *vm, a []uint64) Status {
	key, ok := v.read(a[0], a[1])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	v.host.beforeShared(v.worker, SharedGet, key)
	value, cas, found := v.host.shared.lookup(key)
	st := StatusNotFound
	if found {
		st = StatusOK
	}
	v.host.afterShared(v.worker, SharedGet, key, st)
	if !found {
		return st
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
	st := v.host.shared.store(key, value, uint32(a[4]))
	v.host.afterShared(v.worker, SharedSet, key, st)
	return st
}
