//go:build wasip1

// Command empty has every callback of proxy-wasm that a filter of HTTP requests may have. By default none does anything:
// the benchmark hides those that Pinwheel lacks and so has the cost of official Go's wasm alone. With "do" in its
// configuration a request's headers, or an answer's, make that host call "times" times, which tells what the call costs.
// It is no plugin to use.
package main

import "unsafe"

type pointer = unsafe.Pointer

//go:wasmimport env proxy_get_buffer_bytes
func getBuffer(kind, start, size uint32, data, length pointer) uint32

//go:wasmimport env proxy_get_header_map_value
func getHeader(kind uint32, key pointer, keyLen uint32, value, valueLen pointer) uint32

//go:wasmimport env proxy_get_header_map_pairs
func getPairs(kind uint32, pairs, pairsLen pointer) uint32

//go:wasmimport env proxy_replace_header_map_value
func replaceHeader(kind uint32, key pointer, keyLen uint32, value pointer, valueLen uint32) uint32

//go:wasmimport env proxy_get_shared_data
func getShared(key pointer, keyLen uint32, value, valueLen, cas pointer) uint32

//go:wasmimport env proxy_set_shared_data
func setShared(key pointer, keyLen uint32, value pointer, valueLen, cas uint32) uint32

//go:wasmimport env proxy_get_property
func getProperty(path pointer, pathLen uint32, value, valueLen pointer) uint32

//go:wasmimport env proxy_set_property
func setProperty(path pointer, pathLen uint32, value pointer, valueLen uint32) uint32

//go:wasmimport wasi_snapshot_preview1 clock_time_get
func clockTimeGet(clock uint32, precision uint64, time pointer) uint32

const (
	pluginConfiguration = 7 // buffer
	requestHeaders      = 0 // map
	responseHeaders     = 2 // map
	monotonic           = 1 // clock
)

// step is what the callbacks of one configuration do.
type step struct {
	do       uint32
	response bool
	times    int
	value    []byte // what is written: to the header, or to shared data
	key      []byte // of shared data
}

const (
	doNothing = iota
	doHeader
	doPairs
	doClock
	doShared
	doSetShared
	doProperty
	doReplace
	doSetProperty
)

// names are those of the calls in a configuration.
var names = [...]string{"nothing", "header", "pairs", "clock", "shared", "set_shared", "property", "replace", "set_property"}

var (
	session     = []byte("x-session-id")
	target      = []byte("x-gateway-destination-endpoint")
	status      = []byte(":status")
	connection  = []byte("connection\x00id")
	destination = []byte("dest")

	// One module serves many listeners, each a root context with a configuration. Context ids only grow, and few streams
	// run at once: a ring tells a stream's root.
	steps [1 << 8]step
	roots [1 << 12]uint32

	// What the host writes lives here until the next request.
	arena [1 << 17]byte
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
func onConfigure(root, size uint32) uint32 {
	var data, length uint32
	if size == 0 {
		return 1
	}
	if root >= uint32(len(steps)) || getBuffer(pluginConfiguration, 0, size, pointer(&data), pointer(&length)) != 0 {
		return 0
	}
	config := string(unsafe.Slice((*byte)(pointer(uintptr(data))), length))
	s := step{times: number(config, "times"), response: number(config, "response") != 0}
	do := text(config, "do")
	for i, name := range names {
		if name == do {
			s.do = uint32(i)
		}
	}
	s.value, s.key = []byte(text(config, "value")), []byte("empty/"+do)
	if n := number(config, "size"); n > 0 {
		// Listeners of one module have their shared data in common: a key for each size.
		s.value, s.key = make([]byte, n), append(s.key, byte(n>>8), byte(n))
		setShared(pointer(&s.key[0]), uint32(len(s.key)), pointer(&s.value[0]), uint32(n), 0)
	}
	steps[root] = s
	return 1
}

// text is the string of a key in flat JSON without escapes, or empty.
func text(config, key string) string {
	key = `"` + key + `":"`
	for i := 0; i+len(key) <= len(config); i++ {
		if config[i:i+len(key)] == key {
			for j := i + len(key); j < len(config); j++ {
				if config[j] == '"' {
					return config[i+len(key) : j]
				}
			}
		}
	}
	return ""
}

// number is the whole number of a key in flat JSON, or 0.
func number(config, key string) (n int) {
	key = `"` + key + `":`
	for i := 0; i+len(key) <= len(config); i++ {
		if config[i:i+len(key)] == key {
			for j := i + len(key); j < len(config) && config[j] >= '0' && config[j] <= '9'; j++ {
				n = n*10 + int(config[j]-'0')
			}
			return n
		}
	}
	return 0
}

//go:wasmexport proxy_on_context_create
func onContextCreate(context, root uint32) {
	if root != 0 {
		roots[context%uint32(len(roots))] = root
	}
}

// run makes the calls of a stream's configuration.
func run(context uint32, response bool) {
	used = 0
	s := &steps[roots[context%uint32(len(roots))]%uint32(len(steps))]
	if s.do == doNothing || s.response != response {
		return
	}
	kind, header := uint32(requestHeaders), session
	if response {
		kind, header = responseHeaders, status
	}
	var data, length, cas uint32
	var now int64
	for range s.times {
		switch s.do {
		case doHeader:
			getHeader(kind, pointer(&header[0]), uint32(len(header)), pointer(&data), pointer(&length))
		case doPairs:
			getPairs(kind, pointer(&data), pointer(&length))
		case doClock:
			clockTimeGet(monotonic, 1, pointer(&now))
		case doShared:
			getShared(pointer(&s.key[0]), uint32(len(s.key)), pointer(&data), pointer(&length), pointer(&cas))
		case doSetShared:
			setShared(pointer(&s.key[0]), uint32(len(s.key)), pointer(&s.value[0]), uint32(len(s.value)), 0)
		case doProperty:
			getProperty(pointer(&connection[0]), uint32(len(connection)), pointer(&data), pointer(&length))
		case doReplace:
			replaceHeader(kind, pointer(&target[0]), uint32(len(target)), pointer(&s.value[0]), uint32(len(s.value)))
		case doSetProperty:
			setProperty(pointer(&destination[0]), uint32(len(destination)), pointer(&s.value[0]), uint32(len(s.value)))
		}
	}
}

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(context, _, _ uint32) uint32 {
	run(context, false)
	return 0
}

//go:wasmexport proxy_on_response_headers
func onResponseHeaders(context, _, _ uint32) uint32 {
	run(context, true)
	return 0
}

//go:wasmexport proxy_on_request_body
func onRequestBody(_, _, _ uint32) uint32 { return 0 }

//go:wasmexport proxy_on_request_trailers
func onRequestTrailers(_, _ uint32) uint32 { return 0 }

//go:wasmexport proxy_on_response_body
func onResponseBody(_, _, _ uint32) uint32 { return 0 }

//go:wasmexport proxy_on_response_trailers
func onResponseTrailers(_, _ uint32) uint32 { return 0 }

//go:wasmexport proxy_on_http_call_response
func onHTTPCallResponse(_, _, _, _, _ uint32) {}

//go:wasmexport proxy_on_tick
func onTick(_ uint32) {}

//go:wasmexport proxy_on_queue_ready
func onQueueReady(_, _ uint32) {}

//go:wasmexport proxy_on_foreign_function
func onForeignFunction(_, _, _ uint32) {}

//go:wasmexport proxy_on_done
func onDone(_ uint32) uint32 { return 1 }

//go:wasmexport proxy_on_log
func onLog(_ uint32) {}

//go:wasmexport proxy_on_delete
func onDelete(_ uint32) {}
