//go:build wasip1

package main

//go:wasmimport env proxy_resolve_shared_queue
func hResolveQueue(vm ptr, vmn uint32, k ptr, kn uint32, id ptr) uint32

//go:wasmimport env proxy_dequeue_shared_queue
func hDequeue(id uint32, p, n ptr) uint32

//go:wasmimport env proxy_enqueue_shared_queue
func hEnqueue(id uint32, p ptr, n uint32) uint32

//go:wasmexport proxy_on_queue_ready
func queueReady(id, queue uint32) { run("queue_ready", id, 0, queue) }

// queues are the ids of those that this instance has registered, by name.
var queues = map[string]uint32{}

// queueID is that of a queue given by name or number.
func queueID(s string) uint32 {
	if id, ok := queues[s]; ok {
		return id
	}
	return number(s)
}

func init() {
	operations["qregister"] = func(a []string) string {
		var id uint32
		st := hRegisterQueue(str(a[0]), size(a[0]), ptr(&id))
		queues[a[0]] = id
		return result(st, num(id))
	}
	operations["qresolve"] = func(a []string) string {
		var id uint32
		st := hResolveQueue(str(a[0]), size(a[0]), str(a[1]), size(a[1]), ptr(&id))
		return result(st, num(id))
	}
	operations["enqueue"] = func(a []string) string { return num(hEnqueue(queueID(a[0]), str(a[1]), size(a[1]))) }
	operations["dequeue"] = func(a []string) string {
		return got(func(p, n ptr) uint32 { return hDequeue(queueID(a[0]), p, n) })
	}
}
