package hostsim

import (
	"context"
	"errors"
	"fmt"
)

// Two workers each count up a number in shared data. A plugin that reads it and writes it back loses one of the two when
// both read first; one that does so by compare-and-swap never does. Explore finds the order in which it happens, and Play
// repeats that.
func ExampleHost_Explore() {
	wasm, _ := buildGuest("probe")
	for _, operation := range []string{"sdinc", "sdadd"} {
		h, err := New(context.Background(), Config{Wasm: wasm, Workers: 2, PluginConfig: []byte("request_headers " + operation + " count")})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer h.Close()
		request := func(w *Worker) {
			s := w.NewStream()
			_, _ = s.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}}, true)
			_ = s.End(EndNormal)
		}
		start, _ := h.Snapshot()
		both := Scenario{Workers: []func(*Worker){request, request}}
		explored, err := h.Explore(Exploration{Scenario: both, Check: func(Played) error {
			if value, _, _ := h.SharedData().Get("count"); string(value) != "2" {
				return fmt.Errorf("two requests, counted %s", value)
			}
			return nil
		}})
		fmt.Printf("%s: %v\n", operation, explored)
		var failed *ScheduleError
		if errors.As(err, &failed) {
			fmt.Println(err)
			_ = h.Restore(start)
			again := h.Play(both, 0, failed.Choices...)
			value, _, _ := h.SharedData().Get("count")
			fmt.Printf("again %v: counted %s\n", again.Choices, value)
		}
	}
	// Output:
	// sdinc: 2 schedules of up to 4 steps run, 0 given up as repetitions
	// two requests, counted 1
	// choices [0 1 0 1]
	//   worker 0 env.proxy_get_shared_data (read data count): NOT_FOUND
	//   worker 1 env.proxy_get_shared_data (read data count): NOT_FOUND
	//   worker 0 env.proxy_set_shared_data (write data count): OK
	//   worker 1 env.proxy_set_shared_data (write data count): OK
	// again [0 1 0 1]: counted 1
	// sdadd: 4 schedules of up to 6 steps run, 0 given up as repetitions
}
