//go:build wasip1

// Abi020 is a module of ABI 0.2.0: headers have an end of stream, an absent one is not found, and streams of all types
// resume by one function.
package main

import (
	"fmt"
	"unsafe"
)

type ptr = unsafe.Pointer

func main() {}

//go:wasmexport proxy_abi_version_0_2_0
func abiVersion() {}

//go:wasmimport env proxy_log
func hLog(level uint32, p ptr, n uint32) uint32

//go:wasmimport env proxy_continue_stream
func hContinue(kind uint32) uint32

//go:wasmimport env proxy_close_stream
func hClose(kind uint32) uint32

//go:wasmimport env proxy_get_header_map_value
func hGetHeader(kind uint32, k ptr, kn uint32, v, vn ptr) uint32

var arena [4096]byte

//go:wasmexport malloc
func malloc(uint32) ptr { return ptr(&arena[0]) }

func log(format string, values ...any) {
	s := fmt.Sprintf(format, values...)
	hLog(2, ptr(unsafe.StringData(s)), uint32(len(s)))
}

func absent(kind uint32) uint32 {
	var p, n uint32
	name := "x-absent"
	return hGetHeader(kind, ptr(unsafe.StringData(name)), uint32(len(name)), ptr(&p), ptr(&n))
}

//go:wasmexport proxy_on_request_headers
func requestHeaders(id, n, eos uint32) uint32 {
	log("request_headers %d %d %d, absent = %d", id, n, eos, absent(0))
	return 1
}

//go:wasmexport proxy_on_response_headers
func responseHeaders(id, n, eos uint32) uint32 {
	log("response_headers %d %d %d, continue = %d, close = %d", id, n, eos, hContinue(0), hClose(1))
	return 0
}

//go:wasmexport proxy_on_log
func onLog(id uint32) { log("log, absent = %d %d", absent(0), absent(3)) }

//go:wasmexport proxy_on_foreign_function
func foreignFunction(_, function, n uint32) { log("foreign_function %d %d", function, n) }
