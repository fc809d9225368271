package abi

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
)

// RequestHeaders returns all headers of the request in one host call: the host
// enters the VM once to ask for memory, where a call for each header would make
// it enter each time, which is what a header costs. Empty if the host has none
// to give.
func RequestHeaders() Headers { return headerMap(0) }

// ResponseHeaders returns all headers of the response in one host call.
func ResponseHeaders() Headers { return headerMap(2) }

// ReplaceRequestHeader is the SDK's ReplaceHttpRequestHeader without its way through
// an interface.
func ReplaceRequestHeader(name, value string) error {
	return statusError(hostcall.ReplaceHeader(0, unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)),
		unsafe.Pointer(unsafe.StringData(value)), uint32(len(value))))
}

// headerMap reads a map by its number in the ABI.
func headerMap(kind uint32) Headers {
	var at, n uint32
	if hostcall.GetHeaderPairs(kind, unsafe.Pointer(&at), unsafe.Pointer(&n)) != 0 || n == 0 {
		return Headers{}
	}
	return newHeaders(hostcall.Bytes(at, n))
}
