package abi

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// GetSharedData is the SDK's call of that name without its allocations: the
// value is valid until the callback ends. Errors: types.ErrorStatusNotFound,
// types.ErrorInternalFailure.
func GetSharedData(key string) (value []byte, cas uint32, err error) {
	var at, n, c uint32
	if err := statusError(hostcall.GetSharedData(unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)),
		unsafe.Pointer(&at), unsafe.Pointer(&n), unsafe.Pointer(&c))); err != nil {
		return nil, 0, err
	}
	return hostcall.Bytes(at, n), c, nil
}

// SetSharedData is the SDK's call of that name. Errors:
// types.ErrorStatusCasMismatch, types.ErrorInternalFailure.
func SetSharedData(key string, value []byte, cas uint32) error {
	return statusError(hostcall.SetSharedData(unsafe.Pointer(unsafe.StringData(key)), uint32(len(key)),
		unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value)), cas))
}

func statusError(status uint32) error {
	switch status {
	case 0:
		return nil
	case 1:
		return types.ErrorStatusNotFound
	case 8:
		return types.ErrorStatusCasMismatch
	}
	return types.ErrorInternalFailure
}
