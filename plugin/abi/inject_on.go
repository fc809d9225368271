//go:build pinwheel_inject

package abi

import (
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
)

const injecting = true

// inject panics in the callback that the shared-data key pinwheel_inject names,
// and ends the VM, past recovery, at a request with the header
// x-pinwheel-inject: trap.
func inject(callback string) {
	if name, _, err := proxywasm.GetSharedData("pinwheel_inject"); err == nil && string(name) == callback {
		panic("injected")
	}
	if callback != "proxy_on_request_headers" {
		return
	}
	name := NamesOf("x-pinwheel-inject")
	if name.Find(RequestHeaders); name.Value(0) == "trap" {
		end := uintptr(1<<32 - 16)
		**(**byte)(unsafe.Pointer(&end)) = 1 // beyond the memory: the VM traps
	}
}
