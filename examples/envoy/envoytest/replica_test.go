package envoytest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func ask(t *testing.T, ctx context.Context, r *Replica, do string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+r.Addr+"/v1/x?y=z", strings.NewReader("12345"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Session-ID", "s1")
	req.Header.Set(DoHeader, do)
	return http.DefaultTransport.RoundTrip(req)
}

func openReplica(t *testing.T) *Replica {
	t.Helper()
	r, err := OpenReplica("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestReplicaRecords(t *testing.T) {
	r := openReplica(t)
	res, err := ask(t, t.Context(), r, "")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.Header.Get(ServedByHeader) != r.Addr {
		t.Errorf("served by %q, want %q", res.Header.Get(ServedByHeader), r.Addr)
	}
	seen := r.Requests()
	if len(seen) != 1 || seen[0].Session != "s1" || seen[0].Method != "POST" || seen[0].Path != "/v1/x?y=z" || seen[0].Body != 5 || seen[0].Host != r.Addr {
		t.Errorf("recorded %+v", seen)
	}
	if r.Forget(); len(r.Requests()) != 0 {
		t.Error("Forget left a record")
	}
}

func TestReplicaAnswersAsAsked(t *testing.T) {
	r := openReplica(t)
	cases := []struct {
		do       string
		open, ok bool // a response at all; a whole one
		chunks   int
	}{
		{"", true, true, 0},
		{"delay=1ms", true, true, 0},
		{"chunks=5", true, true, 5},
		{"chunks=5&every=1ms", true, true, 5},
		{"chunks=5&reset=2", true, false, 2},
		{"reset=0", false, false, 0},
		{"redirect=/v1/x&chunks=3", true, true, 3},
		{"redirect=/v1/y&chunks=3", true, true, 0},
	}
	for _, c := range cases {
		res, err := ask(t, t.Context(), r, c.do)
		if (err == nil) != c.open {
			t.Errorf("%q: %v", c.do, err)
		}
		if err != nil {
			continue
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if (err == nil) != c.ok || strings.Count(string(body), "data: ") != c.chunks {
			t.Errorf("%q: body %q, %v", c.do, body, err)
		}
	}
}

func TestReplicaHoldsUntilReleased(t *testing.T) {
	r := openReplica(t)
	res, err := ask(t, t.Context(), r, "chunks=1&hold=1")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, len("data: 0\n\n"))
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	r.Release()
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
		t.Errorf("after Release: %q, %v", rest, err)
	}
}

func TestReplicaClosesAndReopens(t *testing.T) {
	r := openReplica(t)
	addr := r.Addr
	r.Close()
	if _, err := ask(t, t.Context(), r, ""); err == nil {
		t.Error("a closed replica answered")
	}
	if err := r.Reopen(); err != nil {
		t.Fatal(err)
	}
	res, err := ask(t, t.Context(), r, "")
	if err != nil || r.Addr != addr {
		t.Fatalf("after Reopen on %s (was %s): %v", r.Addr, addr, err)
	}
	res.Body.Close()
}
