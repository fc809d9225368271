package hostsim

import (
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
