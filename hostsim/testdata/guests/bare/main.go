//go:build wasip1

// Bare exports nothing but what a host requires: a host must do without every callback.
package main

import "unsafe"

func main() {}

//go:wasmexport proxy_abi_version_0_2_0
func abiVersion() {}

var arena [4096]byte

//go:wasmexport proxy_on_memory_allocate
func memoryAllocate(uint32) unsafe.Pointer { return unsafe.Pointer(&arena[0]) }
