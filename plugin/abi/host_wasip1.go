package abi

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
)

// host stands behind the SDK's interface. What it does not bind is answered by
// unbound.
type host struct{ unbound }

func ptr(b *byte) unsafe.Pointer { return unsafe.Pointer(b) }

// result hands a host's out-parameters to the SDK.
func result(status, at, size uint32, data **byte, n *int) uint32 {
	*data = hostcall.Address(at)
	*n = int(size)
	return status
}

func (host) ProxyLog(level uint32, message *byte, size int) uint32 {
	return hostcall.Log(level, ptr(message), uint32(size))
}

func (host) ProxyGetProperty(path *byte, pathSize int, value **byte, valueSize *int) uint32 {
	var at, n uint32
	status := hostcall.GetProperty(ptr(path), uint32(pathSize), unsafe.Pointer(&at), unsafe.Pointer(&n))
	return result(status, at, n, value, valueSize)
}

func (host) ProxySendLocalResponse(code uint32, details *byte, detailsSize int, body *byte, bodySize int, headers *byte, headersSize int, grpc int32) uint32 {
	return hostcall.SendLocalResponse(code, ptr(details), uint32(detailsSize), ptr(body), uint32(bodySize), ptr(headers), uint32(headersSize), grpc)
}

func (host) ProxyGetSharedData(key *byte, keySize int, value **byte, valueSize *int, cas *uint32) uint32 {
	var at, n, c uint32
	status := hostcall.GetSharedData(ptr(key), uint32(keySize), unsafe.Pointer(&at), unsafe.Pointer(&n), unsafe.Pointer(&c))
	*cas = c
	return result(status, at, n, value, valueSize)
}

func (host) ProxySetSharedData(key *byte, keySize int, value *byte, valueSize int, cas uint32) uint32 {
	return hostcall.SetSharedData(ptr(key), uint32(keySize), ptr(value), uint32(valueSize), cas)
}

func (host) ProxyReplaceHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32 {
	return hostcall.ReplaceHeader(kind, ptr(key), uint32(keySize), ptr(value), uint32(valueSize))
}

func (host) ProxyRemoveHeaderMapValue(kind uint32, key *byte, keySize int) uint32 {
	return hostcall.RemoveHeader(kind, ptr(key), uint32(keySize))
}

func (host) ProxyGetBufferBytes(kind uint32, start, size int, value **byte, valueSize *int) uint32 {
	var at, n uint32
	status := hostcall.GetBuffer(kind, uint32(start), uint32(size), unsafe.Pointer(&at), unsafe.Pointer(&n))
	return result(status, at, n, value, valueSize)
}

func (host) ProxyContinueStream(kind uint32) uint32 { return hostcall.ContinueStream(kind) }

func (host) ProxySetEffectiveContext(contextID uint32) uint32 {
	return hostcall.SetEffectiveContext(contextID)
}

func (host) ProxySetTickPeriodMilliseconds(period uint32) uint32 {
	return hostcall.SetTickPeriod(period)
}

func init() { hostcall.Bind(host{}) }
