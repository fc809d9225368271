//go:build wasip1

package main

import "strings"

//go:wasmimport env proxy_get_status
func hGetStatus(code, p, n ptr) uint32

//go:wasmimport env proxy_grpc_call
func hGRPCCall(u ptr, un uint32, s ptr, sn uint32, m ptr, mn uint32, h ptr, hn uint32, b ptr, bn uint32, timeout uint32, id ptr) uint32

//go:wasmimport env proxy_grpc_stream
func hGRPCStream(u ptr, un uint32, s ptr, sn uint32, m ptr, mn uint32, h ptr, hn uint32, id ptr) uint32

//go:wasmimport env proxy_grpc_send
func hGRPCSend(id uint32, p ptr, n uint32, end uint32) uint32

//go:wasmimport env proxy_grpc_cancel
func hGRPCCancel(id uint32) uint32

//go:wasmimport env proxy_grpc_close
func hGRPCClose(id uint32) uint32

//go:wasmimport env proxy_call_foreign_function
func hForeign(f ptr, fn uint32, a ptr, an uint32, p, n ptr) uint32

//go:wasmexport proxy_on_grpc_receive_initial_metadata
func grpcInitial(id, call, n uint32) { run("grpc_receive_initial_metadata", id, 0, call, n) }

//go:wasmexport proxy_on_grpc_receive
func grpcReceive(id, call, n uint32) { run("grpc_receive", id, 0, call, n) }

//go:wasmexport proxy_on_grpc_receive_trailing_metadata
func grpcTrailing(id, call, n uint32) { run("grpc_receive_trailing_metadata", id, 0, call, n) }

//go:wasmexport proxy_on_grpc_close
func grpcClose(id, call, status uint32) { run("grpc_close", id, 0, call, status) }

//go:wasmexport proxy_on_foreign_function
func foreignFunction(id, function, n uint32) { run("foreign_function", id, 0, function, n) }

//go:wasmexport proxy_on_request_metadata
func requestMetadata(id, n uint32) uint32 { return run("request_metadata", id, 0, n) }

//go:wasmexport proxy_on_response_metadata
func responseMetadata(id, n uint32) uint32 { return run("response_metadata", id, 0, n) }

var lastGRPC = map[uint32]uint32{} // id of the last gRPC call, by plugin context

// grpcID is that of a call given by number, or of the last one.
func grpcID(s string) uint32 {
	if s == "last" {
		return lastGRPC[hereRoot]
	}
	return number(s)
}

func init() {
	operations["status"] = func([]string) string {
		var code uint32
		s := got(func(p, n ptr) uint32 { return hGetStatus(ptr(&code), p, n) })
		return s[:1] + " " + num(code) + s[1:]
	}
	// A ^ in the cluster is a newline, as service messages need it.
	cluster := func(s string) string { return strings.ReplaceAll(s, "^", "\n") }
	// grpccall cluster service method message timeout name=value...
	operations["grpccall"] = func(a []string) string {
		var id uint32
		h, to := encode(a[5:]), cluster(a[0])
		st := hGRPCCall(str(to), size(to), str(a[1]), size(a[1]), str(a[2]), size(a[2]), str(h), size(h), str(a[3]), size(a[3]),
			number(a[4]), ptr(&id))
		lastGRPC[hereRoot] = id
		return result(st, num(id))
	}
	// grpcstream cluster service method name=value...
	operations["grpcstream"] = func(a []string) string {
		var id uint32
		h, to := encode(a[3:]), cluster(a[0])
		st := hGRPCStream(str(to), size(to), str(a[1]), size(a[1]), str(a[2]), size(a[2]), str(h), size(h), ptr(&id))
		lastGRPC[hereRoot] = id
		return result(st, num(id))
	}
	operations["grpcsend"] = func(a []string) string {
		return num(hGRPCSend(grpcID(a[0]), str(a[1]), size(a[1]), number(a[2])))
	}
	operations["grpccancel"] = func(a []string) string { return num(hGRPCCancel(grpcID(a[0]))) }
	operations["grpcclose"] = func(a []string) string { return num(hGRPCClose(grpcID(a[0]))) }
	operations["foreign"] = func(a []string) string {
		return got(func(p, n ptr) uint32 { return hForeign(str(a[0]), size(a[0]), str(a[1]), size(a[1]), p, n) })
	}
	// foreignquiet does not ask for the result.
	operations["foreignquiet"] = func(a []string) string {
		return num(hForeign(str(a[0]), size(a[0]), str(a[1]), size(a[1]), nil, nil))
	}
}
