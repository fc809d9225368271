//go:build pinwheel_inject

package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

// inject panics in the callback that the shared-data key pinwheel_inject names.
func inject(callback string) {
	if name, _, err := proxywasm.GetSharedData("pinwheel_inject"); err == nil && string(name) == callback {
		panic("injected")
	}
}
