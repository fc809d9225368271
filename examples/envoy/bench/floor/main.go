//go:build wasip1

// Command floor is the least that a plugin like Pinwheel can cost: per request
// the same three host calls (read the session header, read one shard of about
// 1 KB from shared data, write the target header) and the same callbacks, written
// by hand without the SDK and without bookkeeping, checks or error handling. It
// is a yardstick for the benchmark, never a plugin to use.
package main

import "unsafe"

type pointer = unsafe.Pointer

//go:wasmimport env proxy_get_buffer_bytes
func getBuffer(kind, start, size uint32, data, length pointer) uint32

//go:wasmimport env proxy_get_header_map_value
func getHeader(kind uint32, key pointer, keyLen uint32, value, valueLen pointer) uint32

//go:wasmimport env proxy_replace_header_map_value
func replaceHeader(kind uint32, key pointer, keyLen uint32, value pointer, valueLen uint32) uint32

//go:wasmimport env proxy_get_shared_data
func getShared(key pointer, keyLen uint32, value, valueLen, cas pointer) uint32

//go:wasmimport env proxy_set_shared_data
func setShared(key pointer, keyLen uint32, value pointer, valueLen, cas uint32) uint32

const (
	pluginConfiguration = 7 // buffer
	requestHeaders      = 0 // map
	shardSize           = 1 << 10
	shards              = 1 << 10
)

var (
	session  = []byte("x-session-id")
	target   = []byte("x-gateway-destination-endpoint")
	shardKey = []byte("floor/....")
	empty    [shardSize]byte

	replicas [][]byte

	// What the host writes lives here until the next request.
	arena [64 << 10]byte
	used  uint32
)

func main() {}

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

//go:wasmexport proxy_on_memory_allocate
func onMemoryAllocate(size uint32) pointer {
	size = (size + 7) &^ 7
	if used+size > uint32(len(arena)) {
		used = 0
	}
	p := pointer(&arena[used])
	used += size
	return p
}

//go:wasmexport proxy_on_vm_start
func onVMStart(_, _ uint32) uint32 { return 1 }

//go:wasmexport proxy_on_configure
func onConfigure(_, size uint32) uint32 {
	var data, length uint32
	if getBuffer(pluginConfiguration, 0, size, pointer(&data), pointer(&length)) != 0 {
		return 0
	}
	replicas = addresses(hostBytes(data, length))
	return 1
}

// addresses copies out the quoted strings of the form "1.2.3.4:5".
func addresses(config []byte) (found [][]byte) {
	open := -1
	for i, c := range config {
		if c != '"' {
			continue
		}
		if open < 0 {
			open = i + 1
			continue
		}
		if text := config[open:i]; len(text) > 0 && text[0] >= '0' && text[0] <= '9' {
			found = append(found, append([]byte(nil), text...))
		}
		open = -1
	}
	return found
}

//go:wasmexport proxy_on_context_create
func onContextCreate(_, _ uint32) {}

//go:wasmexport proxy_on_tick
func onTick(_ uint32) {}

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(_, _, _ uint32) uint32 {
	used = 0
	var data, length, cas uint32
	if getHeader(requestHeaders, pointer(&session[0]), uint32(len(session)), pointer(&data), pointer(&length)) != 0 {
		return 0
	}
	hash := uint32(2166136261)
	for _, c := range hostBytes(data, length) {
		hash = (hash ^ uint32(c)) * 16777619
	}
	const digits = "0123456789abcdef"
	for i, n := len(shardKey)-4, hash%shards; i < len(shardKey); i, n = i+1, n>>4 {
		shardKey[i] = digits[n&15]
	}
	if getShared(pointer(&shardKey[0]), uint32(len(shardKey)), pointer(&data), pointer(&length), pointer(&cas)) != 0 {
		setShared(pointer(&shardKey[0]), uint32(len(shardKey)), pointer(&empty[0]), shardSize, 0)
	}
	home := replicas[hash%uint32(len(replicas))]
	replaceHeader(requestHeaders, pointer(&target[0]), uint32(len(target)), pointer(&home[0]), uint32(len(home)))
	return 0
}

//go:wasmexport proxy_on_request_body
func onRequestBody(_, _, _ uint32) uint32 { return 0 }

//go:wasmexport proxy_on_request_trailers
func onRequestTrailers(_, _ uint32) uint32 { return 0 }

//go:wasmexport proxy_on_response_headers
func onResponseHeaders(_, _, _ uint32) uint32 { return 0 }

//go:wasmexport proxy_on_http_call_response
func onHTTPCallResponse(_, _, _, _, _ uint32) {}

//go:wasmexport proxy_on_delete
func onDelete(_ uint32) {}

func hostBytes(data, length uint32) []byte {
	return unsafe.Slice((*byte)(pointer(uintptr(data))), length)
}
