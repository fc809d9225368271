package abi

import "testing"

func TestAppendHeaders(t *testing.T) {
	want := [][2]string{{":method", "GET"}, {":path", "/"}, {"x-empty", ""}, {"x-bytes", "\x00\xff"}}
	if got := appendHeaders(nil, want...); string(got) != string(serialise(want...)) {
		t.Errorf("%q", got)
	}
	n := NamesOf(":method", ":path", "x-empty", "x-bytes")
	n.findIn(appendHeaders(nil, want...))
	for i, w := range want {
		if n.Times(i) != 1 || n.Value(i) != w[1] {
			t.Errorf("%d times %q, want %q", n.Times(i), n.Value(i), w)
		}
	}
}
