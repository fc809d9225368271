package abi

// hostMemory is what the host has been given during the running callback.
var hostMemory arena

// depth is the number of callbacks running: a host may call one while another
// waits for a host call to return.
var depth int

func begin() {
	if depth == 0 {
		hostMemory.reset()
	}
	depth++
}
