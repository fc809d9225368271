package abi

import "testing"

func TestAppendHeaders(t *testing.T) {
	want := [][2]string{{":method", "GET"}, {":path", "/"}, {"x-empty", ""}, {"x-bytes", "\x00\xff"}}
	if got := appendHeaders(nil, want...); string(got) != string(serialise(want...)) {
		t.Errorf("%q", got)
	}
	h := newHeaders(appendHeaders(nil, want...))
	for _, w := range want {
		if name, value, ok := h.Next(all); !ok || name != w[0] || value != w[1] {
			t.Errorf("got %q %q %v, want %q", name, value, ok, w)
		}
	}
}
