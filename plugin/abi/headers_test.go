package abi

import (
	"encoding/binary"
	"strings"
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
		if name, value, ok := h.Next(all); !ok || name != w[0] || value != w[1] {
			t.Errorf("got %q %q %v, want %q", name, value, ok, w)
		}
	}
	if name, _, ok := h.Next(all); ok {
		t.Errorf("%q after the last", name)
	}
}

// all is the set of all lengths.
const all = ^Lengths(0)

func TestHeadersOfSomeLengths(t *testing.T) {
	long := strings.Repeat("n", 63)
	h := newHeaders(serialise([2]string{"a", "1"}, [2]string{"bb", "2"}, [2]string{long + "n", "3"}, [2]string{"ccc", "4"}, [2]string{"dd", "5"}))
	of := Lengths(0).With("xx").With(long)
	for _, want := range []string{"2", "3", "5"} {
		if _, value, _ := h.Next(of); value != want {
			t.Errorf("value %q, want %q", value, want)
		}
	}
	if name, _, ok := h.Next(of); ok {
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
			name, value, ok := h.Next(all)
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
		for _, _, ok := h.Next(all); ok; _, _, ok = h.Next(all) {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
