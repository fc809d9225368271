//go:build !unix

package plugin

import "testing"

// cpuTime is 0: benchmarks by CPU time are for systems that count it.
func cpuTime(*testing.B) float64 { return 0 }
