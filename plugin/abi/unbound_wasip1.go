package abi

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
)

// unimplemented is the proxy-wasm status of a host function that is not there.
const unimplemented = 12

// unbound answers every host call of the SDK's interface with UNIMPLEMENTED and
// names the first use of each in the log. A host function that is imported but
// missing in a gateway would keep the whole module from loading, so only what
// Pinwheel needs is imported.
type unbound struct{}

var reported = map[string]bool{}

func refuse(name string) uint32 {
	if !reported[name] {
		reported[name] = true
		m := []byte("pinwheel: " + name + " is not bound in this build: unimplemented")
		const levelError = 4
		hostcall.Log(levelError, unsafe.Pointer(&m[0]), uint32(len(m)))
	}
	return unimplemented
}

func (unbound) ProxySetProperty(*byte, int, *byte, int) uint32 { return refuse("proxy_set_property") }

func (unbound) ProxyRegisterSharedQueue(*byte, int, *uint32) uint32 {
	return refuse("proxy_register_shared_queue")
}

func (unbound) ProxyResolveSharedQueue(*byte, int, *byte, int, *uint32) uint32 {
	return refuse("proxy_resolve_shared_queue")
}

func (unbound) ProxyDequeueSharedQueue(uint32, **byte, *int) uint32 {
	return refuse("proxy_dequeue_shared_queue")
}

func (unbound) ProxyEnqueueSharedQueue(uint32, *byte, int) uint32 {
	return refuse("proxy_enqueue_shared_queue")
}

func (unbound) ProxyGetHeaderMapValue(uint32, *byte, int, **byte, *int) uint32 {
	return refuse("proxy_get_header_map_value")
}

func (unbound) ProxyAddHeaderMapValue(uint32, *byte, int, *byte, int) uint32 {
	return refuse("proxy_add_header_map_value")
}

func (unbound) ProxyCloseStream(uint32) uint32 { return refuse("proxy_close_stream") }

func (unbound) ProxyGetHeaderMapPairs(uint32, **byte, *int) uint32 {
	return refuse("proxy_get_header_map_pairs")
}

func (unbound) ProxySetHeaderMapPairs(uint32, *byte, int) uint32 {
	return refuse("proxy_set_header_map_pairs")
}

func (unbound) ProxySetBufferBytes(uint32, int, int, *byte, int) uint32 {
	return refuse("proxy_set_buffer_bytes")
}

func (unbound) ProxyHttpCall(*byte, int, *byte, int, *byte, int, *byte, int, uint32, *uint32) uint32 {
	return refuse("proxy_http_call")
}

func (unbound) ProxyCallForeignFunction(*byte, int, *byte, int, **byte, *int) uint32 {
	return refuse("proxy_call_foreign_function")
}

func (unbound) ProxyDone() uint32 { return refuse("proxy_done") }

func (unbound) ProxyRecordMetric(uint32, uint64) uint32 { return refuse("proxy_record_metric") }

func (unbound) ProxyDefineMetric(uint32, *byte, int, *uint32) uint32 {
	return refuse("proxy_define_metric")
}

func (unbound) ProxyIncrementMetric(uint32, int64) uint32 { return refuse("proxy_increment_metric") }

func (unbound) ProxyGetMetric(uint32, *uint64) uint32 { return refuse("proxy_get_metric") }
