package full

// hostMemory is what the host was given and has not handed to the plugin yet.
var hostMemory held

// held keeps memory reachable whose address the host alone knows.
//
// The SDK makes strings and slices out of the memory that the host has filled,
// without copying, and plugins keep them: in maps, in their contexts. So each
// allocation is an object of its own, which the collector frees when the plugin
// has no use for it, and none is ever used again. held bridges the time from the
// host's request to the end of the host call, when the plugin has the address.
type held [][]byte

// alloc returns n new bytes. Zero may be asked for, by 0.2.0's simulators, and gets
// a valid address.
func (h *held) alloc(n uint32) *byte {
	b := make([]byte, max(n, 1))
	*h = append(*h, b)
	return &b[0]
}

// mark begins a host call: what is allocated from here on belongs to it.
func (h *held) mark() int { return len(*h) }

// release ends the host call that began at mark. Host calls nest where the host
// calls a callback from within one, and end in reverse order.
func (h *held) release(mark int) {
	if mark < len(*h) {
		clear((*h)[mark:])
		*h = (*h)[:mark]
	}
}
