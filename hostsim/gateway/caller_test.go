package gateway

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// The plugin's own requests go to the clusters; the stream that waits for the answer goes on with it.
func TestPluginCallsAnUpstream(t *testing.T) {
	asked := backend(t, "asked", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Host != "a" {
			t.Errorf("asked as %q", r.Host)
		}
		w.WriteHeader(201)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" "+string(body))
	})
	cut := backend(t, "cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	clusters := []Cluster{
		{Name: "llm", Hosts: []string{backend(t, "llm", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("x-answer", r.Header.Get("x-answer"))
		})}},
		{Name: "asked", Hosts: []string{closedPort(t), asked}},
		{Name: "closed", Hosts: []string{closedPort(t)}},
		{Name: "none"},
		{Name: "cut", Hosts: []string{cut}},
	}
	caller, err := NewCaller(clusters)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	s := start(t, hostsim.Config{HTTPCall: caller.Call}, Config{Clusters: clusters})
	for cluster, want := range map[string]string{
		"asked":  "201 POST /ask question",
		"closed": "503 upstream connection failure",
		"none":   "503 no healthy upstream",
		"cut":    "", // a reset has no headers
		"other":  "", // not made
	} {
		for range 3 { // the first host of a cluster is another one each time
			resp, _ := do(t, client(t, false), request(t, "GET", s.url, "", "x-do", "call", "x-cluster", cluster))
			if got := resp.Header.Get("x-answer"); resp.StatusCode != 200 || got != want {
				t.Errorf("cluster %s: %d, the plugin heard %q, want %q", cluster, resp.StatusCode, got, want)
			}
		}
	}
}

func TestNewCallerRefuses(t *testing.T) {
	for _, clusters := range [][]Cluster{nil, {{Name: "a", Hosts: []string{"nowhere"}}}, {{Name: "a"}, {Name: "a"}}} {
		if _, err := NewCaller(clusters); !errors.Is(err, ErrConfig) {
			t.Errorf("%v: err %v", clusters, err)
		}
	}
}
