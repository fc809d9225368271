package abi

import (
	"strconv"
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
)

// Metric is a counter, a gauge or a histogram of the gateway, one for all workers. Its functions are the SDK's of those names, and panic
// where those do, but say why without fmt, which nothing else in the module needs.
type Metric uint32

// DefineCounter returns the counter of that name, which begins at 0.
func DefineCounter(name string) Metric { return define(0, name) }

// DefineGauge returns the gauge of that name, which begins at 0.
func DefineGauge(name string) Metric { return define(1, name) }

// DefineHistogram returns the histogram of that name.
func DefineHistogram(name string) Metric { return define(2, name) }

func define(kind uint32, name string) Metric {
	var id uint32
	status := hostcall.DefineMetric(kind, unsafe.Pointer(unsafe.StringData(name)), uint32(len(name)), unsafe.Pointer(&id))
	answered("define metric "+name, status)
	return Metric(id)
}

// Add adds n, which for a counter is 1 or more.
func (m Metric) Add(n int64) {
	if status := hostcall.IncrementMetric(uint32(m), n); status != 0 {
		answered("add "+strconv.FormatInt(n, 10)+" to a metric", status)
	}
}

// Record adds a value to a histogram.
func (m Metric) Record(n uint64) {
	answered("record in a histogram", hostcall.RecordMetric(uint32(m), n))
}

// Value returns the current value.
func (m Metric) Value() int64 {
	var v uint64
	answered("get a metric", hostcall.GetMetric(uint32(m), unsafe.Pointer(&v)))
	return int64(v)
}

func answered(what string, status uint32) {
	if status != 0 {
		panic("the gateway refuses to " + what + ": status " + strconv.FormatUint(uint64(status), 10))
	}
}
