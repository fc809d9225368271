//go:build wasip1

// Greeter adds a header whose value the linker can change (-X main.greeting=VALUE): two builds of one plugin that differ in
// what they do, or, with other build flags, only in how they are compiled.
package main

import "unsafe"

type ptr = unsafe.Pointer

func main() {}

//go:wasmimport env proxy_add_header_map_value
func hAddHeader(kind uint32, k ptr, kn uint32, v ptr, vn uint32) uint32

//go:wasmimport env proxy_get_header_map_value
func hGetHeader(kind uint32, k ptr, kn uint32, v, vn ptr) uint32

//go:wasmimport env proxy_log
func hLog(level uint32, p ptr, n uint32) uint32

var (
	greeting = "hello"
	answer   = "0"
	kept     [][]byte
)

func str(s string) (ptr, uint32) { return ptr(unsafe.StringData(s)), uint32(len(s)) }

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

//go:wasmexport proxy_on_memory_allocate
func memoryAllocate(n uint32) ptr {
	b := make([]byte, n)
	kept = append(kept, b)
	return ptr(&b[0])
}

//go:wasmexport proxy_on_context_create
func contextCreate(_, _ uint32) {}

//go:wasmexport proxy_on_request_headers
func requestHeaders(_, _, _ uint32) uint32 {
	name, size := str("x-name")
	var p, n uint32
	who := "nobody"
	if hGetHeader(0, name, size, ptr(&p), ptr(&n)) == 0 {
		who = unsafe.String((*byte)(ptr(uintptr(p))), n)
	}
	kept = nil
	key, keySize := str("x-greeting")
	value, valueSize := str(greeting + " " + who)
	hAddHeader(0, key, keySize, value, valueSize)
	waste()
	return uint32(answer[0] - '0')
}

// waste makes work for the collector, whose runs differ between builds.
func waste() {
	for range 10 {
		_ = append([]byte(nil), make([]byte, 50_000)...)
	}
}

//go:wasmexport proxy_on_response_headers
func responseHeaders(_, _, _ uint32) uint32 {
	text, size := str("response")
	hLog(2, text, size)
	return 0
}
