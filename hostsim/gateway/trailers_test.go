package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// trailing answers with the request's body, and sends its trailers back with one of its own.
func trailing(w http.ResponseWriter, r *http.Request) {
	http.NewResponseController(w).EnableFullDuplex()
	w.(http.Flusher).Flush()
	io.Copy(w, r.Body)
	w.Header().Set(http.TrailerPrefix+"X-Got", r.Trailer.Get("X-Sum"))
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	w.Header().Set(http.TrailerPrefix+"X-Proto", r.Proto+" "+r.Header.Get("Te"))
}

// Trailers pass in both directions, over both protocols on both sides, with a plugin and without.
func TestTrailersPass(t *testing.T) {
	clusters := []Cluster{
		{Name: "one", Hosts: []string{backend(t, "a", trailing)}},
		{Name: "two", Hosts: []string{http2Backend(t, trailing)}, HTTP2: true},
	}
	withPlugin := start(t, hostsim.Config{}, Config{Clusters: clusters})
	withPlugin.forgetEnds()
	without := &setup{t: t, done: make(chan error, 1)}
	without.serve(Config{Clusters: clusters})
	for _, url := range []string{withPlugin.url, without.url} {
		bothProtocols(t, func(t *testing.T, c *http.Client) {
			for cluster, proto := range map[string]string{"one": "HTTP/1.1", "two": "HTTP/2.0 trailers"} {
				r := request(t, "POST", url, "")
				r.Host = cluster
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body")), -1
				r.Trailer = http.Header{"X-Sum": {"42"}}
				resp, text := do(t, c, r)
				got := resp.Trailer
				if text != "body" || got.Get("x-got") != "42" || got.Get("grpc-status") != "0" || got.Get("x-proto") != proto {
					t.Errorf("cluster %s: body %q, trailers %v", cluster, text, got)
				}
			}
		})
	}
}

// A message whose only content is its trailers keeps them.
func TestTrailersWithoutBody(t *testing.T) {
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "one", Hosts: []string{backend(t, "a", trailing)}}}})
	r := request(t, "POST", s.url, "")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("")), -1
	r.Trailer = http.Header{"X-Sum": {"42"}}
	if resp, text := do(t, client(t, true), r); text != "" || resp.Trailer.Get("x-got") != "42" {
		t.Errorf("body %q, trailers %v", text, resp.Trailer)
	}
}
