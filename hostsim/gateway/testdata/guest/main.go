// Command guest is the plugin of this package's tests: it does what request headers tell it, and counts what it is told.
// Compile with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared.
package main

import "unsafe"

func main() {}

//go:wasmimport env proxy_get_header_map_value
func getHeader(kind uint32, key unsafe.Pointer, keyLen uint32, value, valueLen unsafe.Pointer) uint32

//go:wasmimport env proxy_replace_header_map_value
func setHeader(kind uint32, key unsafe.Pointer, keyLen uint32, value unsafe.Pointer, valueLen uint32) uint32

//go:wasmimport env proxy_get_property
func getProperty(path unsafe.Pointer, pathLen uint32, value, valueLen unsafe.Pointer) uint32

//go:wasmimport env proxy_send_local_response
func sendResponse(status uint32, details unsafe.Pointer, detailsLen uint32, body unsafe.Pointer, bodyLen uint32,
	headers unsafe.Pointer, headersLen uint32, grpc int32) uint32

//go:wasmimport env proxy_log
func hostLog(level uint32, text unsafe.Pointer, length uint32) uint32

//go:wasmimport env proxy_define_metric
func defineMetric(kind uint32, name unsafe.Pointer, nameLen uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_increment_metric
func incrementMetric(id uint32, by int64) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func setTick(ms uint32) uint32

//go:wasmimport env proxy_set_effective_context
func setContext(id uint32) uint32

//go:wasmimport env proxy_continue_stream
func continueStream(kind uint32) uint32

//go:wasmimport env proxy_http_call
func httpCall(cluster unsafe.Pointer, clusterLen uint32, headers unsafe.Pointer, headersLen uint32, body unsafe.Pointer,
	bodyLen uint32, trailers unsafe.Pointer, trailersLen, timeout uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_get_buffer_bytes
func getBuffer(kind, start, length uint32, value, valueLen unsafe.Pointer) uint32

//go:wasmexport proxy_abi_version_0_2_1
func abi() {}

// given holds what the host has written into this module's memory last.
var given []byte

//go:wasmexport proxy_on_memory_allocate
func allocate(size uint32) unsafe.Pointer {
	given = make([]byte, size)
	return unsafe.Pointer(unsafe.SliceData(given))
}

func ptr(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }

func take(status, length uint32) (string, bool) {
	if status != 0 {
		return "", false
	}
	return string(given[:length]), true
}

func header(kind uint32, name string) (string, bool) {
	var at, length uint32
	status := getHeader(kind, ptr(name), uint32(len(name)), unsafe.Pointer(&at), unsafe.Pointer(&length))
	if status == 0 && length == 0 {
		return "", true
	}
	return take(status, length)
}

func property(path string) string {
	var at, length uint32
	status := getProperty(ptr(path), uint32(len(path)), unsafe.Pointer(&at), unsafe.Pointer(&length))
	if length == 0 {
		return ""
	}
	value, _ := take(status, length)
	return value
}

func count(name string) {
	var id uint32
	defineMetric(0, ptr(name), uint32(len(name)), unsafe.Pointer(&id))
	incrementMetric(id, 1)
}

func log(text string) { hostLog(2, ptr(text), uint32(len(text))) }

// mode is what the request of each stream asked for in x-do; waiting are streams to be resumed by the next tick.
var (
	mode    = map[uint32]string{}
	waiting []uint32
)

//go:wasmexport proxy_on_configure
func configure(_, _ uint32) uint32 { setTick(20); return 1 }

//go:wasmexport proxy_on_tick
func tick(uint32) {
	for _, id := range waiting {
		setContext(id)
		continueStream(0)
	}
	waiting = nil
}

//go:wasmexport proxy_on_request_headers
func requestHeaders(id, _, _ uint32) uint32 {
	if v, ok := header(0, "x-pick"); ok {
		const name = "x-gateway-destination-endpoint"
		setHeader(0, ptr(name), uint32(len(name)), ptr(v), uint32(len(v)))
	}
	do, _ := header(0, "x-do")
	mode[id] = do
	switch do {
	case "reply":
		const body = "from the plugin\n"
		sendResponse(418, nil, 0, ptr(body), uint32(len(body)), nil, 0, -1)
		return 1
	case "wait":
		waiting = append(waiting, id)
		return 1
	case "call":
		if !call(id) {
			return 0
		}
		return 1
	case "panic":
		panic("as asked")
	}
	return 0
}

// callers are the streams that wait for a call, by its id.
var callers = map[uint32]uint32{}

// call posts "question" to the cluster that x-cluster names.
func call(stream uint32) bool {
	cluster, _ := header(0, "x-cluster")
	const body = "question"
	pairs := string([]byte{3, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0}) +
		":method\x00POST\x00:path\x00/ask\x00:authority\x00a\x00"
	var id uint32
	status := httpCall(ptr(cluster), uint32(len(cluster)), ptr(pairs), uint32(len(pairs)), ptr(body), uint32(len(body)), nil, 0,
		10_000, unsafe.Pointer(&id))
	callers[id] = stream
	return status == 0
}

// httpCallResponse lets the stream go on with the answer in x-answer.
//
//go:wasmexport proxy_on_http_call_response
func httpCallResponse(_, id, _, size, _ uint32) {
	answer, _ := header(6, ":status")
	if size > 0 {
		var at, length uint32
		text, _ := take(getBuffer(4, 0, size, unsafe.Pointer(&at), unsafe.Pointer(&length)), size)
		answer += " " + text
	}
	setContext(callers[id])
	const name = "x-answer"
	setHeader(0, ptr(name), uint32(len(name)), ptr(answer), uint32(len(answer)))
	continueStream(0)
}

//go:wasmexport proxy_on_request_body
func requestBody(id, _, end uint32) uint32 {
	count("request_body")
	if mode[id] == "collect" && end == 0 {
		return 1
	}
	return 0
}

//go:wasmexport proxy_on_response_headers
func responseHeaders(_, _, _ uint32) uint32 {
	v := property("upstream\x00address")
	const name = "x-upstream"
	setHeader(2, ptr(name), uint32(len(name)), ptr(v), uint32(len(v)))
	return 0
}

//go:wasmexport proxy_on_response_body
func responseBody(_, size, _ uint32) uint32 {
	if size > 0 {
		count("response_body")
	}
	return 0
}

//go:wasmexport proxy_on_log
func onLog(uint32) {
	count("log")
	log("upstream=" + property("upstream\x00address") + " cluster=" + property("xds\x00cluster_name") +
		" details=" + property("response\x00code_details"))
}

//go:wasmexport proxy_on_done
func onDone(uint32) uint32 { count("done"); return 1 }

//go:wasmexport proxy_on_delete
func onDelete(id uint32) { delete(mode, id); count("delete") }
