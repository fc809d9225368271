package hosttest_test

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// askFirst holds each request back until the cluster "auth" has answered, which lets the first stream's request go on.
const askFirst = `
	request_headers httpcall auth 1000 ~ :method=GET :path=/check :authority=auth
	request_headers return 1
	http_call_response get 6 :status
	http_call_response get 6 x-user
	http_call_response buf 4 0 100
	http_call_response effective 2
	http_call_response continue 0`

// A plugin that waits for an answer of its own gets it within Do.
func TestClustersAnswerWithinDo(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: askFirst, Clusters: map[string]hosttest.Response{
		"auth": {Status: 403, Headers: hosttest.Headers{{"X-User", "a"}}, Chunks: []string{"go ", "away"}}}})
	got := h.Do(0, hosttest.Request{Body: "text"})
	if got.Hangs || got.Status != 200 || got.RequestBody != "text" {
		t.Errorf("result %+v", got)
	}
	for _, want := range []string{"get 6 :status = 0 403", "get 6 x-user = 0 a", "buf 4 0 100 = 0 go away"} {
		if !h.Logged(want) {
			t.Errorf("no %q in the log", want)
		}
	}
}

func TestUnknownClusterIsRefused(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: askFirst, Clusters: map[string]hosttest.Response{"other": {}}})
	if got := h.Do(0, hosttest.Request{}); !got.Hangs {
		t.Errorf("result %+v", got)
	}
	if !h.Logged("httpcall auth 1000 ~ :method=GET :path=/check :authority=auth = 2") {
		t.Error("the call was not refused")
	}
}

func TestTrailersAndProperties(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, RootID: "r1", Properties: map[string]string{"node.id": "n1"}, Config: `
		request_headers prop plugin_root_id
		request_headers prop node$id
		request_headers prop source$address
		request_trailers add 1 x-more yes
		response_trailers add 3 x-more too`})
	got := h.Do(0, hosttest.Request{Properties: map[string]string{"source.address": "192.0.2.1:5"},
		Body: "a", Trailers: hosttest.Headers{{"T", "1"}}, Response: hosttest.Response{Trailers: hosttest.Headers{{"grpc-status", "0"}}}})
	if got.RequestTrailers.Value("t") != "1" || got.RequestTrailers.Value("x-more") != "yes" || got.RequestBody != "a" {
		t.Errorf("request %+v", got)
	}
	if got.ResponseTrailers.Value("grpc-status") != "0" || got.ResponseTrailers.Value("x-more") != "too" {
		t.Errorf("response %+v", got)
	}
	for _, want := range []string{" = 0 r1", " = 0 n1", " = 0 192.0.2.1:5"} {
		if !h.Logged(want) {
			t.Errorf("no %q in the log", want)
		}
	}
}

func TestLogged(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: "request_headers log 3 this was said"})
	if h.Logged("was said") {
		t.Error("heard before it was said")
	}
	h.Do(0, hosttest.Request{})
	if !h.Logged("was said") {
		t.Error("not heard")
	}
}
