package abi

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// Get returns the value of the key, valid until the callback ends, and its cas. A key
// that does not exist has no value, and CreateCAS. Errors: types.ErrorInternalFailure.
func (*SharedData) Get(key string) (value []byte, cas uint32, err error) {
	var at, n, c uint32
	switch status := hostcall.GetSharedData(unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)),
		unsafe.Pointer(&at), unsafe.Pointer(&n), unsafe.Pointer(&c)); {
	case status == 0:
		if c == 0 {
			c = CreateCAS
		}
		return hostcall.Bytes(at, n), c, nil
	case status == notFound:
		return nil, CreateCAS, nil
	default:
		return nil, 0, statusError(status)
	}
}

// Set sets the key to the value if cas is still its. Errors:
// types.ErrorStatusCasMismatch, types.ErrorInternalFailure.
func (*SharedData) Set(key string, value []byte, cas uint32) error {
	return statusError(hostcall.SetSharedData(unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)),
		unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value)), cas))
}

// notFound is the proxy-wasm status of a key that does not exist.
const notFound = 1

func statusError(status uint32) error {
	switch status {
	case 0:
		return nil
	case notFound:
		return types.ErrorStatusNotFound
	case 8:
		return types.ErrorStatusCasMismatch
	}
	return types.ErrorInternalFailure
}
