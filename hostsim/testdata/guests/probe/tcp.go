//go:build wasip1

package main

//go:wasmexport proxy_on_new_connection
func newConnection(id uint32) uint32 { return run("new_connection", id, 0) }

//go:wasmexport proxy_on_downstream_data
func downstreamData(id, n, eos uint32) uint32 { return run("downstream_data", id, 0, n, eos) }

//go:wasmexport proxy_on_downstream_connection_close
func downstreamClose(id, peer uint32) { run("downstream_connection_close", id, 0, peer) }

//go:wasmexport proxy_on_upstream_data
func upstreamData(id, n, eos uint32) uint32 { return run("upstream_data", id, 0, n, eos) }

//go:wasmexport proxy_on_upstream_connection_close
func upstreamClose(id, peer uint32) { run("upstream_connection_close", id, 0, peer) }
