//go:build !wasip1

package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

// Metric is of no use: there is no host outside wasm.
type Metric uint32

// DefineCounter fails.
func DefineCounter(string) (Metric, error) { return 0, types.ErrorInternalFailure }

// DefineGauge fails.
func DefineGauge(string) (Metric, error) { return 0, types.ErrorInternalFailure }

// Add does nothing.
func (Metric) Add(int64) {}

// Value returns 0.
func (Metric) Value() int64 { return 0 }
