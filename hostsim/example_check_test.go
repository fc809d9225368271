package hostsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
)

// A run is recorded, and played to the same module, which is equal, and then with one answer changed, which shows at the
// call where the module makes something else of it.
func ExampleCheck() {
	wasm, err := buildGuest("greeter") // it greets x-name in x-greeting
	if err != nil {
		panic(err)
	}
	var recording bytes.Buffer
	h, err := New(context.Background(), Config{Wasm: wasm, Recorder: NewRecorder(&recording, RecordOptions{})})
	if err != nil {
		panic(err)
	}
	s := h.Worker(0).NewStream()
	if _, err := s.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}, {"x-name", "Dev"}}, true); err != nil {
		panic(err)
	}
	_ = s.End(EndNormal)
	if err := h.Close(); err != nil { // which ends the recording
		panic(err)
	}

	text := recording.String()
	report, err := Check(context.Background(), wasm, &recording)
	fmt.Println(report.SameModule, report.VMs, report.Memories, err)

	text = strings.Replace(text, `"out":{"value":"Dev"}`, `"out":{"value":"Ops"}`, 1)
	_, err = Check(context.Background(), wasm, strings.NewReader(text))
	var d *Difference
	if errors.As(err, &d) {
		fmt.Println(d.Callback)
		fmt.Println("-", d.Expected)
		fmt.Println("+", d.Got)
	}
	// Output:
	// true 3 3 <nil>
	// proxy_on_request_headers
	// - host call env.proxy_add_header_map_value {"map":0,"key":"x-greeting","value":"hello Dev"}
	// + calls env.proxy_add_header_map_value {"map":0,"key":"x-greeting","value":"hello Ops"}
}
