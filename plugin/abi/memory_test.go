package abi

import (
	"testing"
	"unsafe"
)

func TestArenaGivesDistinctAlignedMemory(t *testing.T) {
	var a arena
	seen := map[*byte]bool{}
	for _, n := range []uint32{0, 1, 7, 8, 9, 1024, arenaSize / 2} {
		p := a.alloc(n)
		if uintptr(unsafe.Pointer(p))%8 != 0 {
			t.Errorf("alloc(%d): address not 8-byte aligned", n)
		}
		if seen[p] {
			t.Errorf("alloc(%d): address given twice", n)
		}
		seen[p] = true
	}
}

func TestArenaServesLargeAllocationsApart(t *testing.T) {
	var a arena
	small := a.alloc(16)
	big := unsafe.Slice(a.alloc(3*arenaSize), 3*arenaSize)
	for i := range big {
		big[i] = 0xff
	}
	if *small != 0 {
		t.Error("a large allocation overlaps a small one")
	}
	if a.reset(); len(a.large) != 0 || a.used != 0 {
		t.Errorf("after reset: %d bytes used, %d large blocks kept", a.used, len(a.large))
	}
}

func TestArenaAllocatesNothingOnTheStickyPath(t *testing.T) {
	var a arena
	n := testing.AllocsPerRun(100, func() {
		a.reset()
		a.alloc(36)
		a.alloc(24)
		a.alloc(1024)
	})
	if n != 0 {
		t.Errorf("%v allocations for one turn, want 0", n)
	}
}
