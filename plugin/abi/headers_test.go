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
	long := strings.Repeat("n", 63)
	list := [][2]string{{":path", "/"}, {"x-empty", ""}, {"unasked", "?"}, {"x-bytes", "\xc0\xa7\x00\xff"}, {"", "nameless"},
		{long, "63"}, {long + "n", "64"}, {long + "m", "not asked, of the same length"}, {"x-bytez", "nor this"}, {"x-empty", "again"}}
	names := NamesOf(":path", "x-empty", "x-bytes", long, long+"n", "x-empty", "absent", "")
	want := []struct {
		number int
		value  string
	}{{0, "/"}, {1, ""}, {2, "\xc0\xa7\x00\xff"}, {3, "63"}, {4, "64"}, {1, "again"}}
	h := newHeaders(serialise(list...))
	for _, w := range want {
		if number, value, ok := h.Next(names); !ok || number != w.number || value != w.value {
			t.Errorf("got %d %q %v, want %v", number, value, ok, w)
		}
	}
	if number, _, ok := h.Next(names); ok {
		t.Errorf("%d after the last", number)
	}
}

// Names are told apart whatever their length, and wherever they differ.
func TestNamesThatAreAlike(t *testing.T) {
	for size := 1; size < 40; size++ {
		name := strings.Repeat("x", size)
		for i := range size {
			other := name[:i] + "y" + name[i+1:]
			h := newHeaders(serialise([2]string{other, "no"}, [2]string{name + "x", "no"}, [2]string{name[1:], "no"}, [2]string{name, "yes"}))
			if _, value, _ := h.Next(NamesOf(name)); value != "yes" {
				t.Fatalf("%s is not told from %s", name, other)
			}
		}
	}
}

// What a broken host hands over is read as far as it goes.
func FuzzHeaders(f *testing.F) {
	whole := serialise([2]string{":path", "/"}, [2]string{"a", "b"})
	for n := range whole {
		f.Add(whole[:n])
	}
	f.Add([]byte{255, 255, 255, 255, 0})
	names := NamesOf(":path", "a", "bb", "ccc", "")
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHeaders(data)
		for {
			_, value, ok := h.Next(names)
			if !ok {
				return
			}
			if len(value) > len(data) {
				t.Fatalf("%d bytes of header out of %d", len(value), len(data))
			}
		}
	})
}

func TestHeadersAllocateNothing(t *testing.T) {
	data, names := serialise([2]string{":path", "/v1/chat/completions"}, [2]string{"x-session-id", "s"}), NamesOf(":path", "x-session-id")
	if n := testing.AllocsPerRun(100, func() {
		h := newHeaders(data)
		for _, _, ok := h.Next(names); ok; _, _, ok = h.Next(names) {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
