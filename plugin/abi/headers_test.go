package abi

import (
	"encoding/binary"
	"testing"
)

// serialise writes headers as hosts do.
func serialise(pairs ...[2]string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(pairs)))
	for _, p := range pairs {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p[0])))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p[1])))
	}
	for _, p := range pairs {
		b = append(append(append(append(b, p[0]...), 0), p[1]...), 0)
	}
	return b
}

func TestHeaders(t *testing.T) {
	want := [][2]string{{":path", "/"}, {"x-empty", ""}, {"x-bytes", "\xc0\xa7\x00\xff"}, {"x-empty", "again"}}
	h := newHeaders(serialise(want...))
	for _, w := range want {
		if name, value, ok := h.Next(); !ok || name != w[0] || value != w[1] {
			t.Errorf("got %q %q %v, want %q", name, value, ok, w)
		}
	}
	if name, _, ok := h.Next(); ok {
		t.Errorf("%q after the last", name)
	}
}

// What a broken host hands over is read as far as it goes.
func FuzzHeaders(f *testing.F) {
	whole := serialise([2]string{":path", "/"}, [2]string{"a", "b"})
	for n := range whole {
		f.Add(whole[:n])
	}
	f.Add([]byte{255, 255, 255, 255, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHeaders(data)
		for {
			name, value, ok := h.Next()
			if !ok {
				return
			}
			if len(name)+len(value) > len(data) {
				t.Fatalf("%d bytes of header out of %d", len(name)+len(value), len(data))
			}
		}
	})
}

func TestHeadersAllocateNothing(t *testing.T) {
	data := serialise([2]string{":path", "/v1/chat/completions"}, [2]string{"x-session-id", "s"})
	if n := testing.AllocsPerRun(100, func() {
		h := newHeaders(data)
		for _, _, ok := h.Next(); ok; _, _, ok = h.Next() {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
