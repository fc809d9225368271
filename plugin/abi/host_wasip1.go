package abi

import "unsafe"

// Host functions, proxy-wasm ABI 0.2.1. wasm is 32 bit, Go's int and pointers on
// wasip1 are 64 bit in the compiler's eyes: sizes are uint32, and out-parameters
// are uint32 variables that are widened afterwards.

//go:wasmimport env proxy_log
//go:noescape
func hostLog(level uint32, message unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_get_property
//go:noescape
func hostGetProperty(path unsafe.Pointer, pathSize uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_send_local_response
//go:noescape
func hostSendLocalResponse(code uint32, details unsafe.Pointer, detailsSize uint32, body unsafe.Pointer, bodySize uint32, headers unsafe.Pointer, headersSize uint32, grpc int32) uint32

//go:wasmimport env proxy_get_shared_data
//go:noescape
func hostGetSharedData(key unsafe.Pointer, keySize uint32, value, valueSize, cas unsafe.Pointer) uint32

//go:wasmimport env proxy_set_shared_data
//go:noescape
func hostSetSharedData(key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize, cas uint32) uint32

//go:wasmimport env proxy_replace_header_map_value
//go:noescape
func hostReplaceHeader(kind uint32, key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_remove_header_map_value
//go:noescape
func hostRemoveHeader(kind uint32, key unsafe.Pointer, keySize uint32) uint32

//go:wasmimport env proxy_get_buffer_bytes
//go:noescape
func hostGetBuffer(kind, start, size uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_continue_stream
//go:noescape
func hostContinueStream(kind uint32) uint32

//go:wasmimport env proxy_set_effective_context
//go:noescape
func hostSetEffectiveContext(contextID uint32) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func hostSetTickPeriod(milliseconds uint32) uint32

//go:wasmimport env proxy_define_metric
//go:noescape
func hostDefineMetric(kind uint32, name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_increment_metric
func hostIncrementMetric(id uint32, offset int64) uint32

//go:wasmimport env proxy_get_metric
//go:noescape
func hostGetMetric(id uint32, value unsafe.Pointer) uint32

// host stands behind the SDK's interface. What it does not bind is answered by
// unbound.
type host struct{ unbound }

func ptr(b *byte) unsafe.Pointer { return unsafe.Pointer(b) }

// result hands a host's out-parameters to the SDK.
func result(status, at, size uint32, data **byte, n *int) uint32 {
	address := uintptr(at)
	*data = *(**byte)(unsafe.Pointer(&address))
	*n = int(size)
	return status
}

func (host) ProxyLog(level uint32, message *byte, size int) uint32 {
	return hostLog(level, ptr(message), uint32(size))
}

func (host) ProxyGetProperty(path *byte, pathSize int, value **byte, valueSize *int) uint32 {
	var at, n uint32
	status := hostGetProperty(ptr(path), uint32(pathSize), unsafe.Pointer(&at), unsafe.Pointer(&n))
	return result(status, at, n, value, valueSize)
}

func (host) ProxySendLocalResponse(code uint32, details *byte, detailsSize int, body *byte, bodySize int, headers *byte, headersSize int, grpc int32) uint32 {
	return hostSendLocalResponse(code, ptr(details), uint32(detailsSize), ptr(body), uint32(bodySize), ptr(headers), uint32(headersSize), grpc)
}

func (host) ProxyGetSharedData(key *byte, keySize int, value **byte, valueSize *int, cas *uint32) uint32 {
	var at, n, c uint32
	status := hostGetSharedData(ptr(key), uint32(keySize), unsafe.Pointer(&at), unsafe.Pointer(&n), unsafe.Pointer(&c))
	*cas = c
	return result(status, at, n, value, valueSize)
}

func (host) ProxySetSharedData(key *byte, keySize int, value *byte, valueSize int, cas uint32) uint32 {
	return hostSetSharedData(ptr(key), uint32(keySize), ptr(value), uint32(valueSize), cas)
}

func (host) ProxyReplaceHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32 {
	return hostReplaceHeader(kind, ptr(key), uint32(keySize), ptr(value), uint32(valueSize))
}

func (host) ProxyRemoveHeaderMapValue(kind uint32, key *byte, keySize int) uint32 {
	return hostRemoveHeader(kind, ptr(key), uint32(keySize))
}

func (host) ProxyGetBufferBytes(kind uint32, start, size int, value **byte, valueSize *int) uint32 {
	var at, n uint32
	status := hostGetBuffer(kind, uint32(start), uint32(size), unsafe.Pointer(&at), unsafe.Pointer(&n))
	return result(status, at, n, value, valueSize)
}

func (host) ProxyContinueStream(kind uint32) uint32 { return hostContinueStream(kind) }

func (host) ProxySetEffectiveContext(contextID uint32) uint32 {
	return hostSetEffectiveContext(contextID)
}

func (host) ProxySetTickPeriodMilliseconds(period uint32) uint32 { return hostSetTickPeriod(period) }

// currentHost is the variable that every SDK call goes through.
//
//go:linkname currentHost github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.currentHost
var currentHost sdkHost

func init() {
	currentHost = host{}
	keepMethods(currentHost)
}
