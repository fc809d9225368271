package abi

import _ "unsafe" // for go:linkname

// What the SDK would export under TinyGo, for plugin contexts.

//go:linkname proxyOnVMStart github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnVMStart
func proxyOnVMStart(contextID uint32, size int) bool

//go:linkname proxyOnConfigure github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnConfigure
func proxyOnConfigure(contextID uint32, size int) bool

//go:linkname proxyOnContextCreate github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnContextCreate
func proxyOnContextCreate(contextID, rootID uint32)

//go:linkname proxyOnTick github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnTick
func proxyOnTick(contextID uint32)

//go:linkname proxyOnDelete github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnDelete
func proxyOnDelete(contextID uint32)

// What the host calls. A module without proxy_on_done is done at once, which is
// what Pinwheel's contexts would answer. A stream's end is its deletion, which
// follows proxy_on_log without anything between: a callback less for each stream.

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

//go:wasmexport proxy_on_memory_allocate
func onMemoryAllocate(size uint32) *byte { return hostMemory.alloc(size) }

//go:wasmexport proxy_on_vm_start
func onVMStart(contextID, size uint32) (ok bool) {
	begin()
	defer recovered("proxy_on_vm_start", contextID)
	inject("proxy_on_vm_start")
	return proxyOnVMStart(contextID, int(size))
}

//go:wasmexport proxy_on_configure
func onConfigure(contextID, size uint32) (ok bool) {
	begin()
	defer recovered("proxy_on_configure", contextID)
	inject("proxy_on_configure")
	return proxyOnConfigure(contextID, int(size))
}

//go:wasmexport proxy_on_context_create
func onContextCreate(contextID, rootID uint32) {
	if !injecting && rootID != 0 && streams.open(contextID, rootID) {
		return
	}
	begin()
	defer recovered("proxy_on_context_create", contextID)
	inject("proxy_on_context_create")
	if rootID == 0 {
		proxyOnContextCreate(contextID, 0)
	} else {
		streams.openBeside(contextID, rootID)
	}
	finished = true
}

//go:wasmexport proxy_on_tick
func onTick(contextID uint32) {
	begin()
	defer recovered("proxy_on_tick", contextID)
	inject("proxy_on_tick")
	proxyOnTick(contextID)
}

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(contextID, headers, endOfStream uint32) (action uint32) {
	begin()
	defer recovered("proxy_on_request_headers", contextID)
	inject("proxy_on_request_headers")
	action, finished = uint32(streams.of(contextID).OnHttpRequestHeaders(int(headers), endOfStream != 0)), true
	return action
}

//go:wasmexport proxy_on_request_body
func onRequestBody(contextID, size, endOfStream uint32) (action uint32) {
	begin()
	defer recovered("proxy_on_request_body", contextID)
	inject("proxy_on_request_body")
	action, finished = uint32(streams.of(contextID).OnHttpRequestBody(int(size), endOfStream != 0)), true
	return action
}

//go:wasmexport proxy_on_request_trailers
func onRequestTrailers(contextID, trailers uint32) (action uint32) {
	begin()
	defer recovered("proxy_on_request_trailers", contextID)
	inject("proxy_on_request_trailers")
	action, finished = uint32(streams.of(contextID).OnHttpRequestTrailers(int(trailers))), true
	return action
}

//go:wasmexport proxy_on_response_headers
func onResponseHeaders(contextID, headers, endOfStream uint32) (action uint32) {
	begin()
	defer recovered("proxy_on_response_headers", contextID)
	inject("proxy_on_response_headers")
	action, finished = uint32(streams.of(contextID).OnHttpResponseHeaders(int(headers), endOfStream != 0)), true
	return action
}

//go:wasmexport proxy_on_delete
func onDelete(contextID uint32) {
	begin()
	defer recovered("proxy_on_delete", contextID)
	inject("proxy_on_delete")
	if streams.end(contextID) {
		finished = true
		return
	}
	removePlugin(contextID)
	proxyOnDelete(contextID)
}
