package abi

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
)

// ReplaceRequestHeader is the SDK's ReplaceHttpRequestHeader without its way through
// an interface.
func ReplaceRequestHeader(name, value string) error {
	return statusError(hostcall.ReplaceHeader(0, unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)),
		unsafe.Pointer(unsafe.StringData(value)), uint32(len(value))))
}

// headerMap returns a map, valid until the callback ends.
func headerMap(in Map) []byte {
	var at, n uint32
	if hostcall.GetHeaderPairs(uint32(in), unsafe.Pointer(&at), unsafe.Pointer(&n)) != 0 {
		return nil
	}
	return hostcall.Bytes(at, n)
}
