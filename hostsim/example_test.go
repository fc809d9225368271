package hostsim

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// A plugin in a host with two workers. The caller plays the gateway: it hands over each part of a message, and is told
// what goes on.
func Example() {
	wasm, err := buildGuest("probe") // a plugin that does what its configuration says
	if err != nil {
		panic(err)
	}
	h, err := New(context.Background(), Config{Wasm: wasm, Workers: 2, PluginConfig: []byte(`
		configure tickevery 1000
		tick sdset ticked yes 0
		request_headers replace 0 x-greeting hi
		response_headers return 1`)})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	h.Advance(3 * time.Second)

	s := h.Worker(1).NewStream()
	step, _ := s.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}}, true)
	fmt.Println("request:", step.Flow, s.Headers(MapRequestHeaders))
	step, _ = s.ResponseHeaders(Headers{{":status", "200"}}, true)
	fmt.Println("response:", step.Flow)
	_ = s.End(EndClientGone)

	value, _, _ := h.SharedData().Get("ticked")
	fmt.Printf("shared: %s, ticks: %d\n", value, h.Counters().Callbacks["proxy_on_tick"])
	// Output:
	// request: forward [[:method GET] [:path /] [x-greeting hi]]
	// response: wait
	// shared: yes, ticks: 9
}

// A recording holds another build of a plugin to what this one did.
func ExampleCheck() {
	wasm, err := buildGuest("probe")
	if err != nil {
		panic(err)
	}
	var recording bytes.Buffer
	h, err := New(context.Background(), Config{Wasm: wasm, PluginConfig: []byte("request_headers replace 0 x-greeting hi"),
		Recorder: NewRecorder(&recording, RecordOptions{})})
	if err != nil {
		panic(err)
	}
	s := h.Worker(0).NewStream()
	_, _ = s.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}}, true)
	_ = s.End(EndNormal)
	_ = h.Close()

	report, err := Check(context.Background(), wasm, &recording)
	fmt.Println(report.SameModule, report.Memories == report.VMs, err)
	// Output: true true <nil>
}

// Whether a gateway would load a module, without running it.
func ExampleInspect() {
	wasm, err := buildGuest("probe")
	if err != nil {
		panic(err)
	}
	report, err := Inspect(wasm)
	if err != nil {
		panic(err)
	}
	fmt.Println("ABI", report.ABI)
	for _, v := range report.Verdicts {
		fmt.Println(v.Profile, v.Loads, v.Missing)
	}
	// Output:
	// ABI 0.2.1
	// envoy-1.40 true []
	// envoy-1.36 true []
	// permissive true []
}
