//go:build !wasip1

package abi

// Metric is of no use: there is no host outside wasm.
type Metric uint32

// DefineCounter defines nothing.
func DefineCounter(string) Metric { return 0 }

// DefineGauge defines nothing.
func DefineGauge(string) Metric { return 0 }

// DefineHistogram defines nothing.
func DefineHistogram(string) Metric { return 0 }

// Record does nothing.
func (Metric) Record(uint64) {}

// Add does nothing.
func (Metric) Add(int64) {}

// Value returns 0.
func (Metric) Value() int64 { return 0 }
