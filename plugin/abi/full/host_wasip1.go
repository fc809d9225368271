package full

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
)

func init() { hostcall.Bind(host{}) }

// host stands behind the SDK's interface, all of it.
type host struct{}

func ptr(b *byte) unsafe.Pointer { return unsafe.Pointer(b) }

// read runs a host call that answers with memory which it asks the module for.
func read(value **byte, valueSize *int, call func(at, size unsafe.Pointer) uint32) uint32 {
	var at, size uint32
	mark := hostMemory.mark()
	status := call(unsafe.Pointer(&at), unsafe.Pointer(&size))
	*value, *valueSize = hostcall.Address(at), int(size)
	hostMemory.release(mark)
	return status
}

func (host) ProxyLog(level uint32, message *byte, size int) uint32 {
	return hostcall.Log(level, ptr(message), uint32(size))
}

func (host) ProxyGetProperty(path *byte, pathSize int, value **byte, valueSize *int) uint32 {
	return read(value, valueSize, func(at, size unsafe.Pointer) uint32 {
		return hostcall.GetProperty(ptr(path), uint32(pathSize), at, size)
	})
}

func (host) ProxySetProperty(path *byte, pathSize int, value *byte, valueSize int) uint32 {
	return hostcall.SetProperty(ptr(path), uint32(pathSize), ptr(value), uint32(valueSize))
}

func (host) ProxySendLocalResponse(code uint32, details *byte, detailsSize int, body *byte, bodySize int, headers *byte, headersSize int, grpc int32) uint32 {
	return hostcall.SendLocalResponse(code, ptr(details), uint32(detailsSize), ptr(body), uint32(bodySize), ptr(headers), uint32(headersSize), grpc)
}

func (host) ProxyGetSharedData(key *byte, keySize int, value **byte, valueSize *int, cas *uint32) uint32 {
	return read(value, valueSize, func(at, size unsafe.Pointer) uint32 {
		return hostcall.GetSharedData(ptr(key), uint32(keySize), at, size, unsafe.Pointer(cas))
	})
}

func (host) ProxySetSharedData(key *byte, keySize int, value *byte, valueSize int, cas uint32) uint32 {
	return hostcall.SetSharedData(ptr(key), uint32(keySize), ptr(value), uint32(valueSize), cas)
}

func (host) ProxyRegisterSharedQueue(name *byte, nameSize int, id *uint32) uint32 {
	return hostcall.RegisterSharedQueue(ptr(name), uint32(nameSize), unsafe.Pointer(id))
}

func (host) ProxyResolveSharedQueue(vmID *byte, vmIDSize int, name *byte, nameSize int, id *uint32) uint32 {
	return hostcall.ResolveSharedQueue(ptr(vmID), uint32(vmIDSize), ptr(name), uint32(nameSize), unsafe.Pointer(id))
}

func (host) ProxyDequeueSharedQueue(id uint32, value **byte, valueSize *int) uint32 {
	return read(value, valueSize, func(at, size unsafe.Pointer) uint32 { return hostcall.DequeueSharedQueue(id, at, size) })
}

func (host) ProxyEnqueueSharedQueue(id uint32, value *byte, valueSize int) uint32 {
	return hostcall.EnqueueSharedQueue(id, ptr(value), uint32(valueSize))
}

func (host) ProxyGetHeaderMapValue(kind uint32, key *byte, keySize int, value **byte, valueSize *int) uint32 {
	return read(value, valueSize, func(at, size unsafe.Pointer) uint32 {
		return hostcall.GetHeader(kind, ptr(key), uint32(keySize), at, size)
	})
}

func (host) ProxyAddHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32 {
	return hostcall.AddHeader(kind, ptr(key), uint32(keySize), ptr(value), uint32(valueSize))
}

func (host) ProxyReplaceHeaderMapValue(kind uint32, key *byte, keySize int, value *byte, valueSize int) uint32 {
	return hostcall.ReplaceHeader(kind, ptr(key), uint32(keySize), ptr(value), uint32(valueSize))
}

func (host) ProxyRemoveHeaderMapValue(kind uint32, key *byte, keySize int) uint32 {
	return hostcall.RemoveHeader(kind, ptr(key), uint32(keySize))
}

func (host) ProxyGetHeaderMapPairs(kind uint32, value **byte, valueSize *int) uint32 {
	return read(value, valueSize, func(at, size unsafe.Pointer) uint32 { return hostcall.GetHeaderPairs(kind, at, size) })
}

func (host) ProxySetHeaderMapPairs(kind uint32, pairs *byte, size int) uint32 {
	return hostcall.SetHeaderPairs(kind, ptr(pairs), uint32(size))
}

func (host) ProxyGetBufferBytes(kind uint32, start, limit int, value **byte, valueSize *int) uint32 {
	return read(value, valueSize, func(at, size unsafe.Pointer) uint32 {
		return hostcall.GetBuffer(kind, uint32(start), uint32(limit), at, size)
	})
}

func (host) ProxySetBufferBytes(kind uint32, start, limit int, value *byte, valueSize int) uint32 {
	return hostcall.SetBuffer(kind, uint32(start), uint32(limit), ptr(value), uint32(valueSize))
}

func (host) ProxyContinueStream(kind uint32) uint32 { return hostcall.ContinueStream(kind) }

func (host) ProxyCloseStream(kind uint32) uint32 { return hostcall.CloseStream(kind) }

func (host) ProxyHttpCall(upstream *byte, upstreamSize int, headers *byte, headersSize int, body *byte, bodySize int, trailers *byte, trailersSize int, timeout uint32, id *uint32) uint32 {
	return hostcall.HTTPCall(ptr(upstream), uint32(upstreamSize), ptr(headers), uint32(headersSize),
		ptr(body), uint32(bodySize), ptr(trailers), uint32(trailersSize), timeout, unsafe.Pointer(id))
}

func (host) ProxyCallForeignFunction(name *byte, nameSize int, param *byte, paramSize int, value **byte, valueSize *int) uint32 {
	return read(value, valueSize, func(at, size unsafe.Pointer) uint32 {
		return hostcall.CallForeignFunction(ptr(name), uint32(nameSize), ptr(param), uint32(paramSize), at, size)
	})
}

func (host) ProxySetTickPeriodMilliseconds(period uint32) uint32 {
	return hostcall.SetTickPeriod(period)
}

func (host) ProxySetEffectiveContext(contextID uint32) uint32 {
	return hostcall.SetEffectiveContext(contextID)
}

func (host) ProxyDone() uint32 { return hostcall.Done() }

func (host) ProxyDefineMetric(kind uint32, name *byte, nameSize int, id *uint32) uint32 {
	return hostcall.DefineMetric(kind, ptr(name), uint32(nameSize), unsafe.Pointer(id))
}

func (host) ProxyIncrementMetric(id uint32, offset int64) uint32 {
	return hostcall.IncrementMetric(id, offset)
}

func (host) ProxyRecordMetric(id uint32, value uint64) uint32 {
	return hostcall.RecordMetric(id, value)
}

func (host) ProxyGetMetric(id uint32, value *uint64) uint32 {
	return hostcall.GetMetric(id, unsafe.Pointer(value))
}
