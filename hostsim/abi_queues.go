package hostsim

// Functions on shared queues. Source: proxy-wasm-cpp-host, src/exports.cc and src/context.cc.

// callRegisterQueue makes the calling thread's plugin context the one that hears of messages, also where a stream's
// callback asks. A canary's thread is the main thread.
func callRegisterQueue(v *vm, a []uint64) Status {
	name, ok := v.read(a[0], a[1])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	c := v.target()
	if c == nil {
		return StatusBadArgument
	}
	w := v.host.main
	if v.worker >= 0 {
		w = v.host.workers[v.worker]
	}
	q := v.host.config.SharedData.register(v.host.config.VMID, string(name), w, c.root.id)
	if !v.putU32(a[2], q.id) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

// callResolveQueue finds a queue of any vm_id; an empty one stands for the module's own.
func callResolveQueue(v *vm, a []uint64) Status {
	vmID, ok1 := v.read(a[0], a[1])
	name, ok2 := v.read(a[2], a[3])
	if !ok1 || !ok2 {
		return StatusInvalidMemoryAccess
	}
	space := string(vmID)
	if space == "" {
		space = v.host.config.VMID
	}
	q := v.host.config.SharedData.queue(space, string(name))
	switch {
	case q == nil:
		return StatusNotFound
	case !v.putU32(a[4], q.id):
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

// callDequeue takes a message, which is gone also where it cannot be handed over.
func callDequeue(v *vm, a []uint64) Status {
	q := v.host.config.SharedData.queueByID(uint32(a[0]))
	if q == nil {
		return StatusNotFound
	}
	message, ok := q.Dequeue()
	if !ok {
		return StatusEmpty
	}
	return give(v, message, a[1], a[2])
}

func callEnqueue(v *vm, a []uint64) Status {
	message, ok := v.read(a[1], a[2])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	q := v.host.config.SharedData.queueByID(uint32(a[0]))
	if q == nil {
		return StatusNotFound
	}
	q.Enqueue(message)
	return StatusOK
}

// deliverNotice tells a plugin context of a message in a queue. One that has gone meanwhile hears nothing.
func (v *vm) deliverNotice(n queueNotice) {
	c := v.contexts[n.context]
	if v.dead != nil || v.queueReady == nil || c == nil {
		return
	}
	_, _ = v.callback(c, v.queueReady, uint64(c.id), uint64(n.queue))
	v.settle()
}
