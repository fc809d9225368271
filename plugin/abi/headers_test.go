package abi

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
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
	want := [][]string{{"/"}, {"", "again"}, {"\xc0\xa7\x00\xff"}, {"63"}, {"64"}, {}, {}}
	for range 2 { // nothing is left of what was found before
		names.findIn(serialise(list...))
		for number, values := range want {
			if names.Times(number) != len(values) || !slices.Equal(names.Values(number), values) || names.Value(number) != strings.Join(values[:min(1, len(values))], "") {
				t.Errorf("%d: %d times, first %q, all %q; want %q", number, names.Times(number), names.Value(number), names.Values(number), values)
			}
		}
	}
	if names.findIn(nil); names.Times(0) != 0 || names.Value(0) != "" || names.Values(0) != nil {
		t.Errorf("in an empty map: %d times, %q", names.Times(0), names.Values(0))
	}
}

// Names are told apart whatever their length, and wherever they differ.
func TestNamesThatAreAlike(t *testing.T) {
	for size := 1; size < 40; size++ {
		name := strings.Repeat("x", size)
		for i := range size {
			other := name[:i] + "y" + name[i+1:]
			h := serialise([2]string{other, "no"}, [2]string{name + "x", "no"}, [2]string{name[1:], "no"}, [2]string{name, "yes"})
			n := NamesOf(name)
			if n.findIn(h); !slices.Equal(n.Values(0), []string{"yes"}) || n.Value(0) != "yes" {
				t.Fatalf("%s is not told from %s: %q", name, other, n.Values(0))
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
	f.Fuzz(func(t *testing.T, data []byte) { siftsLikeAll(t, data) })
}

// siftsLikeAll fails unless Find sees what reading header by header does.
func siftsLikeAll(t *testing.T, data []byte) {
	t.Helper()
	texts := []string{":path", "a", "bb", "ccc", "", "dddd", "x-session-id", "x_session_id", "x-longer-session-id"}
	n := NamesOf(texts...)
	n.findIn(bytes.Clone(data))
	want := make([][]string, len(texts))
	for at := range n.in.all {
		if i := slices.Index(texts, n.in.name(at)); i >= 0 && n.in.name(at) != "" {
			want[i] = append(want[i], n.in.value(at))
		}
	}
	for i, values := range want {
		if n.Times(i) != len(values) || len(values) > 0 && n.Value(i) != values[0] || !slices.Equal(n.Values(i), values) {
			t.Fatalf("%q of %q: %d times, %q; want %q", texts[i], data, n.Times(i), n.Value(i), values)
		}
	}
}

// The same for maps that are nearly right, or right, of names that are nearly those.
func TestSift(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		words := []string{":path", "a", "b", "bb", "ccc", "", "dddd", "dddx", "x-session-id", "x-session-ix", "y-session-id", "x_session_id", "x-longer-session-id"}
		return words[rng.IntN(len(words))]
	}
	for range 20_000 {
		var list [][2]string
		for range rng.IntN(12) {
			list = append(list, [2]string{word(), word()})
		}
		data := serialise(list...)
		switch rng.IntN(3) {
		case 0:
			data[rng.IntN(len(data))] ^= byte(1 << rng.IntN(8))
		case 1:
			data = data[:rng.IntN(len(data)+1)]
		}
		siftsLikeAll(t, data)
	}
}

func TestHeadersAllocateNothing(t *testing.T) {
	data, names := serialise([2]string{":path", "/v1/chat/completions"}, [2]string{"x-session-id", "s"}), NamesOf(":path", "x-session-id")
	if n := testing.AllocsPerRun(100, func() { names.findIn(data) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
