package differential

import (
	"strings"
	"testing"
)

// Ids go, what they stand for stays; so do times and names of clusters.
func TestTranscript(t *testing.T) {
	tr := newTranscript("upstream.x", "{upstream}")
	tr.wire("client", "200")
	tr.body("client", []byte("ab"))
	tr.body("client", []byte("c\r\n"))
	for _, l := range []string{
		"> context_create 7 0", "> context_create 19 7", "> request_headers 19 5 1", "call upstream.x 10 = 0 44",
		"pairs 2 = 0 a=b, date=Mon, 30 Nov 2026 09:41:54 GMT", "> http_call_response 7 44 1 2 0", "> context_create 23 7", "> log 19",
		"pairs 6 = 0 x-envoy-upstream-service-time=35, x=1",
	} {
		tr.plugin("", l)
	}
	want := `> context_create root 0
> context_create stream root
> request_headers stream 5 1
call {upstream} 10 = 0 call1
pairs 2 = 0 a=b
> http_call_response root call1 1 2 0
> context_create stream2 root
> log stream
pairs 6 = 0 x-envoy-upstream-service-time=, x=1
client < 200
client < data abc\r\n`
	if got := strings.Join(tr.caused(), "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
	tr.next()
	if got := tr.caused(); len(got) > 0 {
		t.Errorf("a new step begins with %q", got)
	}
	if got, want := brief([]byte(strings.Repeat("x", 70)+"end")), "xxxxxxxx...xxxxxend (73 bytes)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
