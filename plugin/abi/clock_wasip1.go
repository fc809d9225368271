package abi

import "unsafe"

//go:wasmimport wasi_snapshot_preview1 clock_time_get
//go:noescape
func clockTimeGet(clock uint32, precision uint64, time unsafe.Pointer) uint32

const clockMonotonic = 1

// Nanotime returns the gateway's monotonic clock in nanoseconds. All workers of
// one process read the same clock, so values may be compared across them; they
// mean nothing outside the process. It is one host call (time.Now makes two).
func Nanotime() int64 {
	var t int64
	clockTimeGet(clockMonotonic, 1, unsafe.Pointer(&t))
	return t
}
