//go:build wasip1

// Tally counts requests in a service: for each it gets a number and puts one more, while the request waits. Its configuration
// is "put", or "compare" to have the service refuse a put on top of another number and then begin again. A request whose call
// fails goes on with the header x-failed.
package main

import (
	"encoding/binary"
	"strconv"
	"unsafe"
)

type ptr = unsafe.Pointer

func main() {}

//go:wasmimport env proxy_add_header_map_value
func hAddHeader(kind uint32, k ptr, kn uint32, v ptr, vn uint32) uint32

//go:wasmimport env proxy_get_header_map_value
func hGetHeader(kind uint32, k ptr, kn uint32, v, vn ptr) uint32

//go:wasmimport env proxy_get_buffer_bytes
func hGetBuffer(kind, start, size uint32, p, n ptr) uint32

//go:wasmimport env proxy_http_call
func hHTTPCall(u ptr, un uint32, h ptr, hn uint32, b ptr, bn uint32, t ptr, tn uint32, timeout uint32, id ptr) uint32

//go:wasmimport env proxy_set_effective_context
func hBecome(id uint32) uint32

//go:wasmimport env proxy_continue_stream
func hContinue(direction uint32) uint32

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

var kept [16][]byte

var keptNext int

//go:wasmexport proxy_on_memory_allocate
func memoryAllocate(n uint32) ptr {
	b := make([]byte, max(n, 1))
	kept[keptNext%len(kept)] = b
	keptNext++
	return ptr(&b[0])
}

func str(s string) (ptr, uint32) { return ptr(unsafe.StringData(s)), uint32(len(s)) }

func at(p, n uint32) string { return string(unsafe.Slice((*byte)(ptr(uintptr(p))), n)) }

// call is a call under way, and what it puts: nothing for one that gets.
type call struct{ stream, put uint32 }

var (
	calls    = map[uint32]call{}
	compares bool
)

//go:wasmexport proxy_on_context_create
func contextCreate(_, _ uint32) {}

//go:wasmexport proxy_on_vm_start
func vmStart(_, _ uint32) uint32 { return 1 }

//go:wasmexport proxy_on_configure
func configure(_, size uint32) uint32 {
	var p, n uint32
	hGetBuffer(7, 0, size, ptr(&p), ptr(&n))
	compares = at(p, n) == "compare"
	return 1
}

// send makes a call for a stream, which the put follows.
func send(stream uint32, put, old uint32, method string) {
	headers := [][2]string{{":method", method}, {":path", "/count"}, {":authority", "tally"}}
	if compares && method == "PUT" {
		headers = append(headers, [2]string{"if-match", strconv.Itoa(int(old))})
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(headers)))
	for _, h := range headers {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, uint32(len(h[0]))), uint32(len(h[1])))
	}
	for _, h := range headers {
		b = append(append(append(append(b, h[0]...), 0), h[1]...), 0)
	}
	var body []byte
	if method == "PUT" {
		body = strconv.AppendInt(nil, int64(put), 10)
	}
	var id uint32
	name, size := str("tally")
	hHTTPCall(name, size, ptr(&b[0]), uint32(len(b)), ptr(unsafe.SliceData(body)), uint32(len(body)), nil, 0, 1000, ptr(&id))
	calls[id] = call{stream, put}
}

//go:wasmexport proxy_on_request_headers
func requestHeaders(id, _, _ uint32) uint32 {
	send(id, 0, 0, "GET")
	return 1
}

//go:wasmexport proxy_on_http_call_response
func httpCallResponse(_, id, _, size, _ uint32) {
	c := calls[id]
	delete(calls, id)
	name, length := str(":status")
	var p, n uint32
	status := ""
	if hGetHeader(6, name, length, ptr(&p), ptr(&n)) == 0 {
		status = at(p, n)
	}
	switch {
	case status == "200" && c.put == 0:
		number := 0
		if hGetBuffer(4, 0, size, ptr(&p), ptr(&n)) == 0 {
			number, _ = strconv.Atoi(at(p, n))
		}
		send(c.stream, uint32(number)+1, uint32(number), "PUT")
		return
	case status == "412":
		send(c.stream, 0, 0, "GET")
		return
	}
	hBecome(c.stream)
	if status != "200" {
		key, keySize := str("x-failed")
		value, valueSize := str("yes")
		hAddHeader(0, key, keySize, value, valueSize)
	}
	hContinue(0)
}
