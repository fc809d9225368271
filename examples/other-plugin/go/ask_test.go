package main

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// asking is the plugin in a gateway whose cluster auth answers a status.
func asking(status int) hosttest.Options {
	return hosttest.Options{Wasm: "ask.wasm", Clusters: map[string]hosttest.Response{"auth": {Status: status}}}
}

func TestAuthDecides(t *testing.T) {
	for status, want := range map[int]int{200: 200, 401: 403, 500: 403} {
		h := hosttest.New(t, asking(status))
		got := h.Do(0, hosttest.Request{Method: "POST", Headers: hosttest.Headers{{"x-user", "ann"}}, Body: "text"})
		if got.Status != want {
			t.Errorf("auth says %d, the client gets %d, want %d", status, got.Status, want)
		}
		if passed := got.RequestBody == "text"; passed != (want == 200) {
			t.Errorf("auth says %d, upstream got %q", status, got.RequestBody)
		}
	}
}

// What auth is asked, and what becomes of the request while it does not answer.
func TestAuthIsAskedOnce(t *testing.T) {
	var asked []*hostsim.HTTPCall
	o := asking(200)
	o.Adjust = func(c *hostsim.Config) {
		c.HTTPCall = func(call *hostsim.HTTPCall) bool { asked = append(asked, call); return true }
	}
	h := hosttest.New(t, o)
	got := h.Do(0, hosttest.Request{Headers: hosttest.Headers{{"x-user", "ann"}}})
	if !got.Hangs {
		t.Errorf("went on without an answer: %+v", got)
	}
	if len(asked) != 1 || asked[0].Cluster != "auth" || asked[0].Headers.Value("x-user") != "ann" {
		t.Errorf("asked %+v", asked)
	}
}

func TestWithoutTheCluster(t *testing.T) {
	o := asking(200)
	o.Clusters = nil
	h := hosttest.New(t, o)
	if got := h.Do(0, hosttest.Request{}); got.Status != 503 || !h.Logged("cannot ask") {
		t.Errorf("result %+v", got)
	}
}
