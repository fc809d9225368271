package hostcall

import (
	_ "unsafe" // for go:linkname

	_ "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm" // currentHost
)

// SDK has the method set of the SDK's internal ProxyWasmHost. The SDK's
// status and enum types are all uint32 underneath, so a value of this interface
// may stand in the SDK's variable: an interface value is its method table, and
// the tables are laid out alike (sorted by name).
type SDK interface {
	ProxyLog(level uint32, message *byte, size int) uint32
	ProxySetProperty(path *byte, pathSize int, value *byte, valueSize int) uint32
	ProxyGetProperty(path *byte, pathSize int, value **byte, valueSize *int) uint32
	ProxySendLocalResponse(code uint32, details *byte, detailsSize int, body *byte, bodySize int, headers *byte, headersSize int, grpc int32) uint32
	ProxyGetSharedData(key *byte, keySize int, value **byte, valueSize *int, cas *uint32) uint32
	ProxySetSharedData(key *byte, keySize int, value *byte, valueSize int, cas uint32) uint32
	ProxyRegisterSharedQueue(name *byte, nameSize int, id *uint32) uint32
	ProxyResolveSharedQueue(vmID *byte, vmIDSize int, name *byte, nameSize int, id *uint32) uint32
	ProxyDequeueSharedQueue(id uint32, value **byte, valueSize *int) uint32
	ProxyEnqueueSharedQueue(id uint32, value *byte, valueSize int) uint32
	ProxyGetHeaderMapValue(kind uint32, key *byte, keySize int, value **byte, valueSize *int) uint32
	ProxyAddHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32
	ProxyReplaceHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32
	ProxyContinueStream(kind uint32) uint32
	ProxyCloseStream(kind uint32) uint32
	ProxyRemoveHeaderMapValue(kind uint32, key *byte, keySize int) uint32
	ProxyGetHeaderMapPairs(kind uint32, value **byte, valueSize *int) uint32
	ProxySetHeaderMapPairs(kind uint32, pairs *byte, size int) uint32
	ProxyGetBufferBytes(kind uint32, start, size int, value **byte, valueSize *int) uint32
	ProxySetBufferBytes(kind uint32, start, size int, value *byte, valueSize int) uint32
	ProxyHttpCall(upstream *byte, upstreamSize int, headers *byte, headersSize int, body *byte, bodySize int, trailers *byte, trailersSize int, timeout uint32, id *uint32) uint32
	ProxyCallForeignFunction(name *byte, nameSize int, param *byte, paramSize int, value **byte, valueSize *int) uint32
	ProxySetTickPeriodMilliseconds(period uint32) uint32
	ProxySetEffectiveContext(contextID uint32) uint32
	ProxyDone() uint32
	ProxyDefineMetric(kind uint32, name *byte, nameSize int, id *uint32) uint32
	ProxyIncrementMetric(id uint32, offset int64) uint32
	ProxyRecordMetric(id uint32, value uint64) uint32
	ProxyGetMetric(id uint32, value *uint64) uint32
}

// currentHost is the variable that every SDK call goes through.
//
//go:linkname currentHost github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.currentHost
var currentHost SDK

// Bind makes the SDK's calls go to h, from init on.
func Bind(h SDK) {
	currentHost = h
	keepMethods(h)
}

// keepMethods names each method once. The linker drops a method that nothing
// calls through an interface it knows, and the SDK's interface is unknown to it.
func keepMethods(h SDK) {
	_ = []any{
		h.ProxyLog, h.ProxySetProperty, h.ProxyGetProperty, h.ProxySendLocalResponse,
		h.ProxyGetSharedData, h.ProxySetSharedData, h.ProxyRegisterSharedQueue,
		h.ProxyResolveSharedQueue, h.ProxyDequeueSharedQueue, h.ProxyEnqueueSharedQueue,
		h.ProxyGetHeaderMapValue, h.ProxyAddHeaderMapValue, h.ProxyReplaceHeaderMapValue,
		h.ProxyContinueStream, h.ProxyCloseStream, h.ProxyRemoveHeaderMapValue,
		h.ProxyGetHeaderMapPairs, h.ProxySetHeaderMapPairs, h.ProxyGetBufferBytes,
		h.ProxySetBufferBytes, h.ProxyHttpCall, h.ProxyCallForeignFunction,
		h.ProxySetTickPeriodMilliseconds, h.ProxySetEffectiveContext, h.ProxyDone,
		h.ProxyDefineMetric, h.ProxyIncrementMetric, h.ProxyRecordMetric, h.ProxyGetMetric,
	}
}
