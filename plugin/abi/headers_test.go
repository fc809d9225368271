package abi

import (
	"encoding/binary"
	"slices"
	"strconv"
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

// numbered is a header that was found.
type numbered struct {
	number int
	value  string
}

func (n *Names) values(h Headers) (all []numbered) {
	for _, f := range n.Find(h) {
		all = append(all, numbered{int(f.Number), h.Value(f)})
	}
	return all
}

func TestHeaders(t *testing.T) {
	long := strings.Repeat("n", 63)
	list := [][2]string{{":path", "/"}, {"x-empty", ""}, {"unasked", "?"}, {"x-bytes", "\xc0\xa7\x00\xff"}, {"", "nameless"},
		{long, "63"}, {long + "n", "64"}, {long + "m", "not asked, of the same length"}, {"x-bytez", "nor this"}, {"x-empty", "again"}}
	names := NamesOf(":path", "x-empty", "x-bytes", long, long+"n", "x-empty", "absent", "")
	want := []numbered{{0, "/"}, {1, ""}, {2, "\xc0\xa7\x00\xff"}, {3, "63"}, {4, "64"}, {1, "again"}}
	if got := names.values(newHeaders(serialise(list...))); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var many [][2]string
	for i := range 100 {
		many = append(many, [2]string{":path", strconv.Itoa(i)}, [2]string{"unasked", ""})
	}
	got := names.values(newHeaders(serialise(many...)))
	if len(got) != 100 {
		t.Fatalf("%d of %d found", len(got), 100)
	}
	for i, f := range got {
		if f != (numbered{0, strconv.Itoa(i)}) {
			t.Errorf("header %d: %v", i, f)
		}
	}
}

// Names are told apart whatever their length, and wherever they differ.
func TestNamesThatAreAlike(t *testing.T) {
	for size := 1; size < 40; size++ {
		name := strings.Repeat("x", size)
		for i := range size {
			other := name[:i] + "y" + name[i+1:]
			h := newHeaders(serialise([2]string{other, "no"}, [2]string{name + "x", "no"}, [2]string{name[1:], "no"}, [2]string{name, "yes"}))
			if found := NamesOf(name).values(h); len(found) != 1 || found[0].value != "yes" {
				t.Fatalf("%s is not told from %s: %v", name, other, found)
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
		for _, h := range names.values(newHeaders(data)) {
			if len(h.value) > len(data) {
				t.Fatalf("%d bytes of header out of %d", len(h.value), len(data))
			}
		}
	})
}

func TestHeadersAllocateNothing(t *testing.T) {
	data, names := serialise([2]string{":path", "/v1/chat/completions"}, [2]string{"x-session-id", "s"}), NamesOf(":path", "x-session-id")
	if n := testing.AllocsPerRun(100, func() { names.Find(newHeaders(data)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
