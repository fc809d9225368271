package full

//go:wasmexport proxy_on_new_connection
func onNewConnection(contextID uint32) uint32 {
	defer crash("proxy_on_new_connection")
	return proxyOnNewConnection(contextID)
}

//go:wasmexport proxy_on_downstream_data
func onDownstreamData(contextID uint32, size int32, end bool) uint32 {
	defer crash("proxy_on_downstream_data")
	return proxyOnDownstreamData(contextID, int(size), end)
}

//go:wasmexport proxy_on_downstream_connection_close
func onDownstreamConnectionClose(contextID, peer uint32) {
	defer crash("proxy_on_downstream_connection_close")
	proxyOnDownstreamConnectionClose(contextID, peer)
}

//go:wasmexport proxy_on_upstream_data
func onUpstreamData(contextID uint32, size int32, end bool) uint32 {
	defer crash("proxy_on_upstream_data")
	return proxyOnUpstreamData(contextID, int(size), end)
}

//go:wasmexport proxy_on_upstream_connection_close
func onUpstreamConnectionClose(contextID, peer uint32) {
	defer crash("proxy_on_upstream_connection_close")
	proxyOnUpstreamConnectionClose(contextID, peer)
}
