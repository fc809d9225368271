package hostsim

import (
	"context"
	"fmt"
)

// The gateway's shared data fails at the second write, and the plugin crashes at its third request.
func ExampleHost_InjectFaults() {
	wasm, err := buildGuest("probe") // a plugin that does what its configuration says
	if err != nil {
		panic(err)
	}
	h, err := New(context.Background(), Config{Wasm: wasm, PluginConfig: []byte("request_headers sdset key value 0")})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	err = h.InjectFaults([]Fault{
		{At: "env.proxy_set_shared_data", Nth: 2, Answer: "INTERNAL_FAILURE"},
		{At: "proxy_on_request_headers", Nth: 3, Trap: true},
	})
	if err != nil {
		panic(err)
	}
	for range 3 {
		s := h.Worker(0).NewStream()
		step, err := s.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}}, true)
		fmt.Println(step.Flow, err != nil)
		_ = s.End(EndNormal)
	}
	fmt.Println(h.FaultsFired())

	err = h.InjectFaults([]Fault{{At: "env.proxy_get_shared_dat", Trap: true}})
	fmt.Println(err)
	// Output:
	// forward false
	// forward false
	// reply true
	// [1 1]
	// hostsim: invalid fault: faults[0]: at: there is no "env.proxy_get_shared_dat", the nearest name is env.proxy_get_shared_data
}
