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

// Queues go by the order in which an exchange meets them. Lines of the main thread are there where they are asked for.
func TestTranscriptOfThreadsAndQueues(t *testing.T) {
	for _, c := range []struct {
		config map[string]string
		want   string
	}{
		{nil, "> context_create root 0\nqregister q = 1\nqregister q = 0 queue1\nqresolve ~ r = 0 queue2\n> queue_ready root queue2"},
		{map[string]string{"threads": ""}, "main: > context_create root 0\nworker: > context_create root 0\nworker: qregister q = 1\n" +
			"main: qregister q = 0 queue1\nworker: qregister q = 0 queue1\nworker: qresolve ~ r = 0 queue2\nworker: > queue_ready root queue2"},
	} {
		tr, e := newTranscript(), &Exchange{Config: c.config}
		e.log(tr, true, "> context_create 1 0")
		e.log(tr, false, "> context_create 2 0")
		e.log(tr, false, "qregister q = 1")
		e.log(tr, true, "qregister q = 0 12")
		e.log(tr, false, "qregister q = 0 12")
		e.log(tr, false, "qresolve ~ r = 0 7")
		e.log(tr, false, "> queue_ready 2 7")
		if got := strings.Join(tr.caused(), "\n"); got != c.want {
			t.Errorf("got\n%s", got)
		}
	}
}
