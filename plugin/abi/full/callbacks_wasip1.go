package full

// What the host calls: all that the SDK exports under TinyGo, with the same version
// of the ABI. Sizes are i32, as TinyGo's int is.

//go:wasmexport proxy_abi_version_0_2_0
func abiVersion() {}

//go:wasmexport proxy_on_memory_allocate
func onMemoryAllocate(size uint32) *byte { return hostMemory.alloc(size) }

//go:wasmexport proxy_on_vm_start
func onVMStart(contextID uint32, size int32) bool {
	defer crash("proxy_on_vm_start")
	runMain()
	return proxyOnVMStart(contextID, int(size))
}

//go:wasmexport proxy_on_configure
func onConfigure(contextID uint32, size int32) bool {
	defer crash("proxy_on_configure")
	return proxyOnConfigure(contextID, int(size))
}

//go:wasmexport proxy_on_context_create
func onContextCreate(contextID, pluginID uint32) {
	defer crash("proxy_on_context_create")
	runMain()
	proxyOnContextCreate(contextID, pluginID)
}

//go:wasmexport proxy_on_tick
func onTick(contextID uint32) {
	defer crash("proxy_on_tick")
	proxyOnTick(contextID)
}

//go:wasmexport proxy_on_queue_ready
func onQueueReady(contextID, queueID uint32) {
	defer crash("proxy_on_queue_ready")
	proxyOnQueueReady(contextID, queueID)
}

//go:wasmexport proxy_on_http_call_response
func onHTTPCallResponse(contextID, call uint32, headers, bodySize, trailers int32) {
	defer crash("proxy_on_http_call_response")
	proxyOnHTTPCallResponse(contextID, call, int(headers), int(bodySize), int(trailers))
}

//go:wasmexport proxy_on_log
func onLog(contextID uint32) {
	defer crash("proxy_on_log")
	proxyOnLog(contextID)
}

//go:wasmexport proxy_on_done
func onDone(contextID uint32) bool {
	defer crash("proxy_on_done")
	return proxyOnDone(contextID)
}

//go:wasmexport proxy_on_delete
func onDelete(contextID uint32) {
	defer crash("proxy_on_delete")
	proxyOnDelete(contextID)
}
