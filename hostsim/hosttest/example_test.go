package hosttest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// t stands for the test that an example's lines would be part of.
var t testing.TB = standIn{}

type standIn struct{ testing.TB }

func (standIn) Helper()                      {}
func (standIn) Cleanup(func())               {}
func (standIn) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (standIn) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

// The examples' plugin does what its configuration says, line by line: in which callback, and what.

// Load a plugin, send a request, look at what came of it.
func Example() {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: "request_headers replace 0 x-greeting hi"})
	got := h.Do(0, hosttest.Request{Path: "/hello", Headers: hosttest.Headers{{"x-session-id", "a"}}})
	fmt.Println(got.Status, got.Request.Value("x-greeting"), got.Request.Value("x-session-id"))
	// Output: 200 hi a
}

// A request and its answer, cut as they come from the network, and a client that goes away at the end.
func ExampleHost_Do() {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: `
		request_body bufset 0 0 3 ONE
		log log 3 the stream has ended`})
	got := h.Do(0, hosttest.Request{
		Method: "POST", Chunks: []string{"one", "two"}, Trailers: hosttest.Headers{{"x-sum", "6"}},
		Response: hosttest.Response{Status: 201, Body: "made"},
		End:      hostsim.EndClientGone,
	})
	fmt.Println(got.RequestBody, got.RequestTrailers.Value("x-sum"), got.Status, got.ResponseBody)
	fmt.Println(h.Messages(hostsim.LogWarn))
	// Output:
	// ONEONE 6 201 made
	// [the stream has ended]
}

// A plugin that asks another service before it lets a request pass.
func ExampleOptions_clusters() {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: askFirst,
		Clusters: map[string]hosttest.Response{"auth": {Status: 200, Headers: hosttest.Headers{{"x-user", "ann"}}}}})
	got := h.Do(0, hosttest.Request{})
	fmt.Println(got.Status, got.Hangs, h.Logged("x-user = 0 ann"))

	h = hosttest.New(t, hosttest.Options{Wasm: probe, Config: askFirst}) // no such cluster
	got = h.Do(0, hosttest.Request{})
	fmt.Println(got.Status, got.Hangs)
	// Output:
	// 200 false true
	// 0 true
}

// Time passes when the test says so.
func ExampleHost_Metric() {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: `
		configure mdef 0 ticks_total
		configure tickevery 1000
		tick minc ticks_total 1`})
	h.Advance(time.Minute)
	fmt.Println(h.Metric("ticks_total")) // the worker's and the main thread's
	// Output: 120
}
