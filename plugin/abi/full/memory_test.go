package full

import (
	"runtime"
	"testing"
	"unsafe"
	"weak"
)

func TestHeldGivesMemoryOfItsOwn(t *testing.T) {
	var h held
	seen := map[*byte]bool{}
	for _, n := range []uint32{0, 1, 8, 8, 64 << 10} {
		mark := h.mark()
		p := h.alloc(n)
		for i := range unsafe.Slice(p, n) {
			unsafe.Slice(p, n)[i] = 0xff
		}
		h.release(mark)
		if seen[p] {
			t.Errorf("alloc(%d): an address that a plugin may still use", n)
		}
		seen[p] = true
	}
	if len(h) != 0 {
		t.Errorf("%d blocks on the list when all host calls have ended", len(h))
	}
}

func TestHeldKeepsWhatOnlyTheHostKnows(t *testing.T) {
	var h held
	var given []weak.Pointer[byte]
	alloc := func() { given = append(given, weak.Make(h.alloc(1024))) }
	expect := func(when, want string) {
		t.Helper()
		runtime.GC()
		got := ""
		for _, p := range given {
			if p.Value() == nil {
				got += "freed "
			} else {
				got += "held "
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	outer := h.mark()
	alloc()
	inner := h.mark() // a callback within the host call, which makes one of its own
	alloc()
	h.release(inner)
	alloc()
	expect("within the outer host call", "held freed held ")
	h.release(outer)
	expect("after it", "freed freed freed ")
	runtime.KeepAlive(&h)
}
