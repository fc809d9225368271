package abi

import "testing"

func TestAppendHeaders(t *testing.T) {
	want := [][2]string{{":method", "GET"}, {":path", "/"}, {"x-empty", ""}, {"x-bytes", "\x00\xff"}}
	if got := appendHeaders(nil, want...); string(got) != string(serialise(want...)) {
		t.Errorf("%q", got)
	}
	found := NamesOf(":method", ":path", "x-empty", "x-bytes").values(newHeaders(appendHeaders(nil, want...)))
	if len(found) != len(want) {
		t.Fatal(found)
	}
	for i, w := range want {
		if found[i] != (numbered{i, w[1]}) {
			t.Errorf("got %v, want %q", found[i], w)
		}
	}
}
