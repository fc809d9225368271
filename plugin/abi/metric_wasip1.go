package abi

import (
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// Metric is a counter or a gauge of the gateway, one for all workers. The SDK's
// calls of metrics panic where the gateway refuses, with texts that bring fmt into
// the module; these are its calls without that.
type Metric uint32

// DefineCounter returns the counter of that name. Errors: types.ErrorInternalFailure.
func DefineCounter(name string) (Metric, error) { return defineMetric(0, name) }

// DefineGauge returns the gauge of that name. Errors: types.ErrorInternalFailure.
func DefineGauge(name string) (Metric, error) { return defineMetric(1, name) }

func defineMetric(kind uint32, name string) (Metric, error) {
	var id uint32
	if hostDefineMetric(kind, unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), unsafe.Pointer(&id)) != 0 {
		return 0, types.ErrorInternalFailure
	}
	return Metric(id), nil
}

// Add adds n. A counter takes no n below 1.
func (m Metric) Add(n int64) { hostIncrementMetric(uint32(m), n) }

// Value returns the current value.
func (m Metric) Value() int64 {
	var v uint64
	hostGetMetric(uint32(m), unsafe.Pointer(&v))
	return int64(v)
}
