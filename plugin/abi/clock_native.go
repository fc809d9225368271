//go:build !wasip1

package abi

import "time"

var start = time.Now()

// Nanotime returns a monotonic clock in nanoseconds, for plugins that are tested
// outside wasm.
func Nanotime() int64 { return int64(time.Since(start)) }
