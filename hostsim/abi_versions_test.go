package hostsim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"
)

// guestProbe is a probe's host that runs another guest.
func guestProbe(t *testing.T, name string, adjust ...func(*Config)) *probe {
	t.Helper()
	return newProbe(t, "config text", append(adjust, func(c *Config) { c.Wasm = guest(t, name) })...)
}

// The first ABI: absent headers are empty and OK, headers have no end of stream, the configuration is a function's, which
// answers the virtual machine's at any time but while a plugin's is read. As seen on Envoy 1.36.4 and 1.40.0.
func TestABI010(t *testing.T) {
	p := guestProbe(t, "abi010", func(c *Config) { c.VMConfig = []byte("vmconf") })
	p.seen = 0
	s := p.Worker(0).NewStream()
	step, err := s.RequestHeaders(get, true)
	ok(t, err)
	if step.Flow != Wait {
		t.Errorf("step %+v", step)
	}
	p.Advance(100 * time.Millisecond)
	if step := s.RequestReady(); !step.Headers || !step.End {
		t.Errorf("step %+v", step)
	}
	step, err = s.ResponseHeaders(reply, true)
	ok(t, err)
	if step.Flow != Wait {
		t.Errorf("step %+v", step)
	}
	p.Advance(100 * time.Millisecond)
	if step := s.ResponseReady(); !step.Headers || !step.End {
		t.Errorf("step %+v", step)
	}
	ok(t, s.End(EndNormal))
	ok(t, p.Worker(0).CallForeignFunction(1, nil)) // a module of this ABI is not told
	p.expect(`context_create configuration = 0 <config text>
		vm_start configuration = 0 <vmconf>
		configure configuration = 0 <config text>
		context_create configuration = 0 <vmconf>
		request_headers 2 3, clear = 0
		request_headers configuration = 0 <vmconf>
		request_headers x-absent = 0 <>
		request_headers x-absent = 2 <>
		effective = 0, continue = 0
		response_headers 2
		effective = 0, continue = 0
		log x-absent = 0 <>
		log x-absent = 0 <>`)
}

func TestABI020(t *testing.T) {
	p := guestProbe(t, "abi020")
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, false)
	ok(t, err)
	step, err := s.ResponseHeaders(reply, true)
	ok(t, err)
	if step.Flow != Reset {
		t.Errorf("step %+v", step)
	}
	ok(t, s.End(EndNormal))
	ok(t, p.Worker(0).CallForeignFunction(4, []byte("ab")))
	p.expect(`request_headers 2 3 0, absent = 1
		response_headers 2 1 1, continue = 0, close = 0
		log, absent = 1 1
		foreign_function 4 2`)
}

// moduleOf is a module of that ABI version that imports name with its own signature.
func moduleOf(marker, name string) *wasmModule {
	m := minimal()
	m.funcs[0].name = marker
	params, results := findHostFunc("env", name).signature()
	m.imports = []wasmImport{{module: "env", name: name, params: params, results: results}}
	return m
}

// Functions that not every ABI has are refused to the others, and named, except under a profile that links anything.
func TestImportsByABIVersion(t *testing.T) {
	markers := []string{"proxy_abi_version_0_1_0", "proxy_abi_version_0_2_0", "proxy_abi_version_0_2_1"}
	for name, has := range map[string]string{ // by marker: x has it
		"proxy_get_configuration": "x--", "proxy_continue_request": "x--", "proxy_continue_response": "x--",
		"proxy_clear_route_cache": "x--", "proxy_continue_stream": "-xx", "proxy_close_stream": "-xx",
		"proxy_get_log_level": "--x", "proxy_log": "xxx", "proxy_grpc_call": "xxx", "pthread_equal": "xxx",
	} {
		for i, marker := range markers {
			m := moduleOf(marker, name)
			r, err := Inspect(m.bytes())
			ok(t, err)
			for _, v := range r.Verdicts {
				want := has[i] == 'x' || v.Profile == "permissive"
				if v.Loads != want || !want && !strings.HasPrefix(v.Missing[0], "env."+name+" (a module of ABI ") {
					t.Errorf("%s, %s: %+v", name, marker, v)
				}
			}
			h, err := New(context.Background(), Config{Wasm: m.bytes()})
			if (err == nil) != (has[i] == 'x') || err != nil && !errors.Is(err, ErrImports) {
				t.Errorf("%s, %s: err %v", name, marker, err)
			}
			if err == nil {
				ok(t, h.Close())
			}
		}
	}
}

// starts is a module whose start functions write their numbers to standard output one after the other.
func starts(t *testing.T, wasi string, names map[string]int) []string {
	t.Helper()
	m := minimal()
	m.imports = []wasmImport{
		{module: wasi, name: "fd_write", params: []api.ValueType{i32, i32, i32, i32}, results: []api.ValueType{i32}},
	}
	store := func(address, value byte) []byte { return []byte{0x41, address, 0x41, value, 0x36, 2, 0} } // i32.store
	for name, digit := range names {
		f := wasmFunc{name: name, body: store(0, byte(digit))}
		f.body = append(f.body, store(8, 0)...)  // iovec: address 0,
		f.body = append(f.body, store(12, 1)...) // one byte
		f.body = append(f.body, 0x41, 1, 0x41, 8, 0x41, 1, 0x41, 16, 0x10, 0, 0x1a)
		if name == "main" {
			f.params, f.results = []api.ValueType{i32, i32}, []api.ValueType{i32}
			f.body = append(f.body, 0x41, 0)
		}
		m.funcs = append(m.funcs, f)
	}
	h, err := New(context.Background(), Config{Wasm: m.bytes()})
	ok(t, err)
	defer h.Close()
	var out []string
	for _, e := range h.Logs() {
		if e.Worker == 0 {
			out = append(out, e.Message)
		}
	}
	return out
}

// Which start functions run, in what order, under both names of WASI: _initialize and then main, or else _start.
func TestStartFunctions(t *testing.T) {
	for _, tt := range []struct {
		names map[string]int
		want  string
	}{
		{map[string]int{"_start": '1'}, "1"},
		{map[string]int{"_initialize": '1', "_start": '2'}, "1"},
		{map[string]int{"_initialize": '1', "main": '2'}, "1 2"},
		{map[string]int{"_initialize": '1', "__main_void": '2'}, "1 2"},
		{map[string]int{"_initialize": '1', "main": '2', "__main_void": '3'}, "1 2"},
		{map[string]int{"main": '2'}, ""}, // without _initialize main is not looked at
		{map[string]int{}, ""},
	} {
		for _, wasi := range []string{"wasi_snapshot_preview1", "wasi_unstable"} {
			if got := strings.Join(starts(t, wasi, tt.names), " "); got != tt.want {
				t.Errorf("%v of %s: ran %q, want %q", tt.names, wasi, got, tt.want)
			}
		}
	}
}

// Of two markers the newest counts.
func TestTwoMarkers(t *testing.T) {
	m := minimal()
	m.funcs = append(m.funcs, wasmFunc{name: "proxy_abi_version_0_1_0"}, wasmFunc{name: "proxy_abi_version_0_2_0"})
	r, err := Inspect(m.bytes())
	ok(t, err)
	if r.ABI != "0.2.1" {
		t.Errorf("ABI %s", r.ABI)
	}
}
