package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// What is told of a request is what has happened to it, and it is told once.
func TestAccess(t *testing.T) {
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/half":
			fmt.Fprint(w, "half")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(201)
		fmt.Fprint(w, "four")
	})
	closed := closedPort(t)
	headers, ends := make(chan Access, 1), make(chan Access, 1)
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}, {Name: "two", Hosts: []string{closed, a}}, {Name: "none"}}, Attempts: 2,
		OnHeaders: func(x *Access) { headers <- *x }, OnEnd: func(x *Access) { ends <- *x }})
	s.forgetEnds()
	cl := client(t, false)
	for _, tt := range []struct {
		path, host, do string
		status         int
		want           string
	}{
		{"/", "llm", "", 201, "201 out 4 llm " + a + " 1  0"},
		{"/", "two", "", 201, "201 out 4 two " + a + " 2  0"},
		{"/", "none", "", 503, "503 out 20 none  0 no_healthy_upstream 0"},
		{"/", "llm", "reply", 0, "local_reply 0"},
		{"/cut", "llm", "", 503, "503 out 39 llm " + a + " 1 upstream_reset_before_response_started 0"},
		{"/half", "llm", "", 200, "200 out 4 llm " + a + " 1 upstream_reset_after_response_started 2"},
	} {
		r := request(t, "POST", s.url+tt.path, "abc", "x-do", tt.do, "x-pick", closed)
		r.Host = tt.host
		resp, err := cl.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if tt.status != 0 && resp.StatusCode != tt.status {
			t.Errorf("%+v: %d", tt, resp.StatusCode)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		begun, x := <-headers, <-ends
		got := fmt.Sprintf("%d out %d %s %s %d %s %d", x.Status, x.ResponseBytes, x.Cluster, x.Upstream, x.Attempts, x.Detail, x.End)
		if !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s at %s: got %q, want %q", tt.path, tt.host, got, tt.want)
		}
		if begun.Status != resp.StatusCode || x.Attempts > 0 && x.RequestBytes != 3 || begun.Upstream != x.Upstream || x.Duration < begun.Duration || x.Request.URL.Path != tt.path {
			t.Errorf("%s at %s: at the headers %+v, at the end %+v", tt.path, tt.host, begun, x)
		}
	}
	for _, u := range s.gateway.Upstreams() {
		want := map[string]Upstream{
			"llm" + a:      {"llm", a, 0, 3, 0},
			"two" + closed: {"two", closed, 0, 1, 1},
			"two" + a:      {"two", a, 0, 1, 0},
		}[u.Cluster+u.Address]
		u.Running = 0 // it goes down a moment after the end
		if u != want {
			t.Errorf("%+v, want %+v", u, want)
		}
	}
}
