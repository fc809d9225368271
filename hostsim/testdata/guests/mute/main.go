//go:build wasip1

// Mute has every stream callback and does nothing in them, or, configured with anything at all, makes five host calls a
// stream: it reads a request header and a shared record and writes a request header, reads a response header, and counts.
// It measures the host.
package main

import "unsafe"

type ptr = unsafe.Pointer

func main() {}

//go:wasmimport env proxy_get_header_map_value
func hGetHeader(kind uint32, k ptr, kn uint32, v, vn ptr) uint32

//go:wasmimport env proxy_replace_header_map_value
func hReplaceHeader(kind uint32, k ptr, kn uint32, v ptr, vn uint32) uint32

//go:wasmimport env proxy_get_shared_data
func hGetShared(k ptr, kn uint32, v, vn, cas ptr) uint32

//go:wasmimport env proxy_set_shared_data
func hSetShared(k ptr, kn uint32, v ptr, vn, cas uint32) uint32

//go:wasmimport env proxy_define_metric
func hDefineMetric(kind uint32, k ptr, kn uint32, id ptr) uint32

//go:wasmimport env proxy_increment_metric
func hIncrementMetric(id uint32, by int64) uint32

var (
	arena     [8192]byte
	used      uint32
	calling   bool
	session   = []byte("x-session-id")
	record    = []byte("record")
	dest      = []byte("x-destination")
	addr      = []byte("10.0.0.1:8000")
	state     = []byte(":status")
	streams   = []byte("streams")
	p, n, cas uint32
	metric    uint32
)

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

//go:wasmexport proxy_on_memory_allocate
func memoryAllocate(size uint32) ptr {
	if used+size > uint32(len(arena)) {
		used = 0
	}
	at := ptr(&arena[used])
	used += size
	return at
}

//go:wasmexport proxy_on_configure
func configure(_, size uint32) uint32 {
	if calling = size > 0; calling {
		hSetShared(ptr(&record[0]), uint32(len(record)), ptr(&arena[0]), 1024, 0)
		hDefineMetric(0, ptr(&streams[0]), uint32(len(streams)), ptr(&metric))
	}
	return 1
}

//go:wasmexport proxy_on_context_create
func contextCreate(_, _ uint32) {}

//go:wasmexport proxy_on_request_headers
func requestHeaders(_, _, _ uint32) uint32 {
	if calling {
		hGetHeader(0, ptr(&session[0]), uint32(len(session)), ptr(&p), ptr(&n))
		hGetShared(ptr(&record[0]), uint32(len(record)), ptr(&p), ptr(&n), ptr(&cas))
		hReplaceHeader(0, ptr(&dest[0]), uint32(len(dest)), ptr(&addr[0]), uint32(len(addr)))
	}
	return 0
}

//go:wasmexport proxy_on_response_headers
func responseHeaders(_, _, _ uint32) uint32 {
	if calling {
		hGetHeader(2, ptr(&state[0]), uint32(len(state)), ptr(&p), ptr(&n))
	}
	return 0
}

//go:wasmexport proxy_on_log
func onLog(uint32) {
	if calling {
		hIncrementMetric(metric, 1)
	}
}

//go:wasmexport proxy_on_done
func onDone(uint32) uint32 { return 1 }

//go:wasmexport proxy_on_delete
func onDelete(uint32) {}
