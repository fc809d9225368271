package hostsim

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A fault, a limit or a crash is replayed at the same place, with the same memory.
func TestFaultsReplay(t *testing.T) {
	const script = "request_headers get 0 :path\nrequest_headers sdset k v 0\nrequest_headers garbage 20 3000000\nrequest_headers sdget k\nresponse_headers pairs 2"
	tests := []struct {
		name  string
		fault Fault
		shows string // in the recording
	}{
		{"answer", Fault{At: "env.proxy_get_shared_data", Answer: "INTERNAL_FAILURE"}, `"status":"INTERNAL_FAILURE"`},
		{"answer without a name", Fault{At: "env.proxy_get_shared_data", Answer: "77"}, `"status":77`},
		{"host call traps", Fault{At: "env.proxy_get_shared_data", Trap: true}, `"trap":"env.proxy_get_shared_data: a fault was injected here"`},
		{"callback traps", Fault{At: "proxy_on_response_headers", Trap: true}, `"died":`},
		{"allocator answers null", Fault{At: "proxy_on_memory_allocate", OutOfMemory: true, Worker: "0"}, `"allocator_skipped":true`},
		{"allocator traps", Fault{At: "proxy_on_memory_allocate", Trap: true, Worker: "0", Nth: 2}, `"allocator_skipped":true`},
		{"memory does not grow", Fault{At: "env.proxy_get_header_map_value", OutOfMemory: true}, `"name":"memory.grow"`},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		h, err := New(context.Background(), Config{Wasm: guest(t, "probe"), PluginConfig: []byte(script), FailurePolicy: FailReload, Recorder: NewRecorder(&out, RecordOptions{})})
		ok(t, err)
		ok(t, h.InjectFaults([]Fault{tt.fault}))
		for range 3 {
			s := h.Worker(0).NewStream()
			_, err1 := s.RequestHeaders(get, true)
			_, err2 := s.ResponseHeaders(reply, true)
			if err := errors.Join(err1, err2, s.End(EndNormal)); err != nil && !errors.Is(err, ErrTrap) {
				t.Fatal(err)
			}
			h.Advance(2 * time.Second)
		}
		ok(t, h.Close())
		if !strings.Contains(out.String(), tt.shows) {
			t.Errorf("%s: the recording has no %s", tt.name, tt.shows)
		}
		report, err := Check(context.Background(), guest(t, "probe"), &out)
		if err != nil || report.Memories != report.VMs {
			t.Errorf("%s: %+v, %v", tt.name, report, err)
		}
	}
}

// A module that hangs is cut off in the replay too, wherever it has got to.
func TestDeadlineReplays(t *testing.T) {
	m := minimal()
	m.funcs = append(m.funcs, wasmFunc{name: "proxy_on_tick", params: []byte{i32}, body: []byte{0x03, 0x40, 0x0c, 0, 0x0b}}) // loop br 0 end
	wasm := m.bytes()
	var out bytes.Buffer
	h, err := New(context.Background(), Config{Wasm: wasm, CallTimeout: 5 * time.Millisecond, Recorder: NewRecorder(&out, RecordOptions{})})
	ok(t, err)
	w := h.Worker(0)
	w.mu.Lock()
	_, err = w.vm.callback(&w.vm.roots[0].guestContext, w.vm.tick, 1)
	w.mu.Unlock()
	if !errors.Is(err, ErrDeadline) {
		t.Fatal(err)
	}
	ok(t, h.Close())
	report, err := Check(context.Background(), wasm, &out)
	if err != nil || report.VMs != 3 || report.Memories != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

// A deadline of the caller's ends a module that loops where the recorded one did not.
func TestCheckEndsWithItsContext(t *testing.T) {
	build := func(body ...byte) []byte {
		m := minimal()
		m.funcs = append(m.funcs, wasmFunc{name: "proxy_on_context_create", params: []byte{i32, i32}, body: body})
		return m.bytes()
	}
	var out bytes.Buffer
	h, err := New(context.Background(), Config{Wasm: build(), Recorder: NewRecorder(&out, RecordOptions{})})
	ok(t, err)
	ok(t, h.Close())
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := Check(ctx, build(0x03, 0x40, 0x0c, 0, 0x0b), &out); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
