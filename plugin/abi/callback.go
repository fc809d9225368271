package abi

// hostMemory is what the host has been given during the running callback.
var hostMemory arena

// depth is the number of callbacks running: a host may call one while another
// waits for a host call to return.
var depth int

// FreeHostMemory gives back, before the callback ends, all memory that host
// calls have filled. Every string and slice that they returned is invalid
// afterwards. A loop over many large values needs it; nothing else should.
func FreeHostMemory() { hostMemory.reset() }

func begin() {
	if depth == 0 {
		hostMemory.reset()
	}
	depth++
}
