//go:build wasip1

// Abi010 is a module of the first ABI: it has no end of stream on headers, asks for its configuration by a function of its
// own, and resumes by two. It pauses every request and response until its next tick, and logs what it is told and answered.
package main

import (
	"fmt"
	"unsafe"
)

type ptr = unsafe.Pointer

func main() {}

//go:wasmexport proxy_abi_version_0_1_0
func abiVersion() {}

//go:wasmimport env proxy_log
func hLog(level uint32, p ptr, n uint32) uint32

//go:wasmimport env proxy_get_configuration
func hConfiguration(p, n ptr) uint32

//go:wasmimport env proxy_continue_request
func hContinueRequest() uint32

//go:wasmimport env proxy_continue_response
func hContinueResponse() uint32

//go:wasmimport env proxy_clear_route_cache
func hClearRouteCache() uint32

//go:wasmimport env proxy_get_header_map_value
func hGetHeader(kind uint32, k ptr, kn uint32, v, vn ptr) uint32

//go:wasmimport env proxy_set_effective_context
func hEffective(id uint32) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func hSetTick(ms uint32) uint32

var (
	kept    [][]byte
	waiting uint32
	resume  func() uint32
)

//go:wasmexport proxy_on_memory_allocate
func memoryAllocate(n uint32) ptr {
	b := make([]byte, max(n, 1))
	kept = append(kept, b)
	return ptr(&b[0])
}

func log(format string, values ...any) {
	s := fmt.Sprintf(format, values...)
	hLog(2, ptr(unsafe.StringData(s)), uint32(len(s)))
}

// show runs a call that answers by address and size.
func show(what string, call func(p, n ptr) uint32) {
	var p, n uint32
	st := call(ptr(&p), ptr(&n))
	s := ""
	if n > 0 {
		s = unsafe.String((*byte)(ptr(uintptr(p))), n)
	}
	log("%s = %d <%s>", what, st, s)
}

func configuration(when string) {
	show(when+" configuration", func(p, n ptr) uint32 { return hConfiguration(p, n) })
}

func header(when string, kind uint32, name string) {
	show(when+" "+name, func(p, n ptr) uint32 {
		return hGetHeader(kind, ptr(unsafe.StringData(name)), uint32(len(name)), p, n)
	})
}

//go:wasmexport proxy_on_context_create
func contextCreate(id, parent uint32) { configuration("context_create") }

//go:wasmexport proxy_on_vm_start
func vmStart(id, size uint32) uint32 {
	configuration("vm_start")
	return 1
}

//go:wasmexport proxy_on_configure
func configure(id, size uint32) uint32 {
	configuration("configure")
	hSetTick(100)
	return 1
}

//go:wasmexport proxy_on_request_headers
func requestHeaders(id, n uint32) uint32 {
	log("request_headers %d %d, clear = %d", id, n, hClearRouteCache())
	configuration("request_headers")
	header("request_headers", 0, "x-absent")
	header("request_headers", 2, "x-absent")
	waiting, resume = id, func() uint32 { return hContinueRequest() }
	return 1
}

//go:wasmexport proxy_on_request_body
func requestBody(id, n, eos uint32) uint32 {
	log("request_body %d %d %d", id, n, eos)
	return 0
}

//go:wasmexport proxy_on_response_headers
func responseHeaders(id, n uint32) uint32 {
	log("response_headers %d", id)
	waiting, resume = id, func() uint32 { return hContinueResponse() }
	return 1
}

//go:wasmexport proxy_on_tick
func tick(uint32) {
	if waiting != 0 {
		log("effective = %d, continue = %d", hEffective(waiting), resume())
		waiting = 0
	}
}

//go:wasmexport proxy_on_foreign_function
func foreignFunction(_, _, _ uint32) { log("foreign_function") }

//go:wasmexport proxy_on_log
func onLog(id uint32) {
	header("log", 0, "x-absent")
	header("log", 3, "x-absent")
}
