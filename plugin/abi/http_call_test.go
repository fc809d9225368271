package abi

import "testing"

func TestAppendHeaders(t *testing.T) {
	want := [][2]string{{":method", "GET"}, {":path", "/"}, {"x-empty", ""}, {"x-bytes", "\x00\xff"}}
	if got := appendHeaders(nil, want...); string(got) != string(serialise(want...)) {
		t.Errorf("%q", got)
	}
	h := newHeaders(appendHeaders(nil, want...))
	names := NamesOf(":method", ":path", "x-empty", "x-bytes")
	for i, w := range want {
		if number, value, ok := h.Next(names); !ok || number != i || value != w[1] {
			t.Errorf("got %d %q %v, want %q", number, value, ok, w)
		}
	}
}
