package abi

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// HTTPGet asks an upstream cluster of the gateway for a path, in the name of the
// plugin context whose callback runs, or whose stream's does, which must be an
// HTTPCaller to hear the answer. The host answers 504 itself after timeout ms. It takes
// the place of the SDK's DispatchHttpCall, which needs a host call more and a table of
// callbacks. Errors: types.ErrorStatusBadArgument if there is no such cluster,
// types.ErrorInternalFailure.
func HTTPGet(cluster, path string, timeout uint32) (call uint32, err error) {
	return send(cluster, "", timeout, [2]string{":method", "GET"}, [2]string{":path", path}, [2]string{":authority", cluster})
}

// HTTPPost is HTTPGet for a POST of JSON text, with a header authorization unless that is
// empty.
func HTTPPost(cluster, path, authorization, body string, timeout uint32) (call uint32, err error) {
	headers := [][2]string{{":method", "POST"}, {":path", path}, {":authority", cluster}, {"content-type", "application/json"}}
	if authorization != "" {
		headers = append(headers, [2]string{"authorization", authorization})
	}
	return send(cluster, body, timeout, headers...)
}

func send(cluster, body string, timeout uint32, headers ...[2]string) (call uint32, err error) {
	text := appendHeaders(nil, headers...)
	var id uint32
	status := hostcall.HTTPCall(unsafe.Pointer(unsafe.StringData(cluster)), uint32(len(cluster)),
		unsafe.Pointer(unsafe.SliceData(text)), uint32(len(text)), unsafe.Pointer(unsafe.StringData(body)), uint32(len(body)),
		nil, 0, timeout, unsafe.Pointer(&id))
	if status == 2 {
		return 0, types.ErrorStatusBadArgument
	}
	return id, statusError(status)
}

// HTTPCallBody returns the first size bytes of its body.
func HTTPCallBody(size int) []byte {
	var at, n uint32
	const httpCallResponseBody = 4
	if hostcall.GetBuffer(httpCallResponseBody, 0, uint32(size), unsafe.Pointer(&at), unsafe.Pointer(&n)) != 0 || n == 0 {
		return nil
	}
	return hostcall.Bytes(at, n)
}

//go:wasmexport proxy_on_http_call_response
func onHTTPCallResponse(contextID, call, headers, bodySize, trailers uint32) {
	begin()
	defer recovered("proxy_on_http_call_response", contextID)
	inject("proxy_on_http_call_response")
	if p, ok := pluginOf(contextID).(HTTPCaller); ok {
		p.OnHTTPCallResponse(call, int(headers), int(bodySize))
	}
}
