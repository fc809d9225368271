package hostsim

import (
	"context"
	"fmt"
)

// A rolling update: requests that are under way stay with the code that began them, new ones meet the new code, and the
// drain ends what is old: at the end of the last request its own context is deleted, and then the plugin's.
func ExampleHost_Update() {
	wasm, _ := buildGuest("probe")
	other, _ := buildGuest("mute")
	h, err := New(context.Background(), Config{Wasm: wasm, Log: func(e LogEntry) {
		if e.Worker == 0 && e.Level == LogInfo {
			fmt.Println(e.Message)
		}
	}, PluginConfig: []byte("request_headers get 0 :path\nresponse_headers get 2 :status\ndelete log 1 over")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	running := h.Worker(0).NewStream()
	_, _ = running.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}}, true)
	if err := h.Update(context.Background(), Update{Wasm: other}); err != nil {
		fmt.Println(err)
	}
	_, _ = running.ResponseHeaders(Headers{{":status", "200"}}, true)
	h.Drain()
	_ = running.End(EndNormal)
	// Output:
	// get 0 :path = 0 /
	// get 2 :status = 0 200
	// log 1 over = 0
	// log 1 over = 0
}
