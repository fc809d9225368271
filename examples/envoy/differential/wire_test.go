package differential

import (
	"fmt"
	"strings"
	"testing"
)

// Messages come out the same whatever pieces they come in.
func TestReaderInPieces(t *testing.T) {
	wire := "HTTP/1.1 100 Continue\r\n\r\n" +
		"HTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nx-end: 2\r\n\r\n" +
		"HTTP/1.1 201 OK\r\ncontent-length: 2\r\n\r\nhi" +
		"HTTP/1.1 204 OK\r\n\r\n" +
		"HTTP/1.1 200 OK\r\n\r\nto the end"
	const want = "100; 200 x-a=1; data abcde; end x-end=2; 201 content-length=2; data hi; end; 204; end; 200; data to the end; end"
	for size := 1; size < len(wire); size += 7 {
		tr := newTranscript()
		r := &reader{
			gotHeaders: func(start []string, h [][2]string) { tr.wire("client", showHeaders(start[1], h)) },
			gotData:    func(b []byte) { tr.body("client", b) },
			gotEnd:     func(h [][2]string) { tr.wire("client", strings.TrimSpace("end"+showHeaders("", h))) },
		}
		for rest := wire; rest != ""; {
			n := min(size, len(rest))
			r.feed([]byte(rest[:n]))
			rest = rest[n:]
		}
		if whole := r.closed(); !whole {
			t.Errorf("pieces of %d: cut", size)
		}
		if got := strings.ReplaceAll(strings.Join(tr.caused(), "; "), "client < ", ""); got != want {
			t.Errorf("pieces of %d: %s", size, got)
		}
	}
}

func TestReaderOfACutMessage(t *testing.T) {
	r := &reader{gotHeaders: func([]string, [][2]string) {}, gotData: func([]byte) {}, gotEnd: func([][2]string) { t.Error("ended") }}
	r.feed([]byte("POST /a HTTP/1.1\r\ncontent-length: 5\r\n\r\nhel"))
	if r.closed() {
		t.Error("a cut message counts as whole")
	}
}

func TestWriting(t *testing.T) {
	got := fmt.Sprintf("%s%s%s", head("GET / HTTP/1.1", [][2]string{{"a", "1"}}), chunk([]byte("abc")), lastChunk([][2]string{{"x", "2"}}))
	if want := "GET / HTTP/1.1\r\na: 1\r\n\r\n3\r\nabc\r\n0\r\nx: 2\r\n\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
