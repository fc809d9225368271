package hostsim

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// What a module is refused for before any of it runs, with the same words from New and from Inspect under each profile.
func TestModulesThatNoGatewayLoads(t *testing.T) {
	other := func(kind ...byte) func(*wasmModule) {
		return func(m *wasmModule) { m.imports = []wasmImport{{module: "env", name: "x", other: kind}} }
	}
	for _, tt := range []struct {
		name   string
		change func(m *wasmModule)
		kind   error
		want   string
	}{
		{"callback with floats", func(m *wasmModule) { m.add("proxy_on_request_headers", "FFF:i", i32s(0)) }, ErrABI,
			"export proxy_on_request_headers as (f64, f64, f64) -> (i32) (a gateway calls (i32, i32, i32) -> (i32))"},
		{"callback of the first ABI", func(m *wasmModule) { m.add("proxy_on_request_headers", "ii:i", i32s(0)) }, ErrABI,
			"export proxy_on_request_headers as (i32, i32) -> (i32) (a gateway calls (i32, i32, i32) -> (i32))"},
		{"callback of a later ABI", func(m *wasmModule) {
			m.funcs[0].name = "proxy_abi_version_0_1_0"
			m.add("proxy_on_response_headers", "iii:i", i32s(0))
		}, ErrABI, "export proxy_on_response_headers as (i32, i32, i32) -> (i32) (a gateway calls (i32, i32) -> (i32))"},
		{"callback without its result", func(m *wasmModule) { m.add("proxy_on_configure", "ii:") }, ErrABI,
			"export proxy_on_configure as (i32, i32) -> () (a gateway calls (i32, i32) -> (i32))"},
		{"callback with a result too many", func(m *wasmModule) { m.add("proxy_on_log", "i:i", i32s(0)) }, ErrABI,
			"export proxy_on_log as (i32) -> (i32) (a gateway calls (i32) -> ())"},
		{"64-bit allocator", func(m *wasmModule) { m.funcs[1].results, m.funcs[1].body = typesOf("I"), []byte{0x42, 0} }, ErrABI,
			"export malloc as (i32) -> (i64) (a gateway calls (i32) -> (i32))"},
		{"allocator without a result", func(m *wasmModule) { m.funcs[1].results, m.funcs[1].body = nil, nil }, ErrABI,
			"export malloc as (i32) -> () (a gateway calls (i32) -> (i32))"},
		{"start function with a parameter", func(m *wasmModule) { m.add("_initialize", "i:") }, ErrABI,
			"export _initialize as (i32) -> () (a gateway calls () -> ())"},
		{"no allocator", func(m *wasmModule) { m.funcs[1].name = "other" }, ErrABI, "no export malloc or proxy_on_memory_allocate"},
		{"no marker", func(m *wasmModule) { m.funcs[0].name = "other" }, ErrABI, "pinwheel/plugin/abi/full)"},
		{"memory not exported", func(m *wasmModule) { m.hidden = true }, ErrABI, "no export of a memory"},
		{"no memory", func(m *wasmModule) { m.hidden, m.memory = true, []byte{} }, ErrABI, "no export of a memory"},
		{"too much memory", func(m *wasmModule) { m.memory = append([]byte{0}, uleb(DefaultMemoryLimitPages+1)...) }, ErrMemory,
			"the module declares 16385 pages of memory, more than the limit of 16384"},
		{"imported global", other(3, 0x7f, 0), ErrImports, "env.x as a global (gateways offer functions only)"},
		{"imported table", other(1, 0x70, 0, 1), ErrImports, "env.x as a table (hostsim offers functions only; Envoy would link it)"},
		{"behind an imported table with a limit", func(m *wasmModule) {
			m.imports = []wasmImport{{module: "env", name: "x", other: []byte{1, 0x70, 1, 0, 9}}, {module: "env", name: "y", other: []byte{3, 0x7f, 0}}}
		}, ErrImports, "env.y as a global (gateways offer functions only)"},
		{"imported memory", func(m *wasmModule) {
			other(2, 1, 1, 16)(m)
			m.hidden, m.memory = true, []byte{}
		}, ErrImports, "env.x as a memory (hostsim offers functions only; Envoy would link it)"},
		{"import of another type", func(m *wasmModule) {
			m.imports = []wasmImport{{module: "env", name: "proxy_log", params: typesOf("IFf"), results: typesOf("i")}}
		}, ErrImports, "env.proxy_log as (i64, f64, f32) -> (i32) (it is (i32, i32, i32) -> (i32))"},
		{"import without its result", func(m *wasmModule) {
			m.imports = []wasmImport{{module: "env", name: "proxy_log", params: typesOf("iii")}}
		}, ErrImports, "env.proxy_log as (i32, i32, i32) -> () (it is (i32, i32, i32) -> (i32))"},
	} {
		m := minimal()
		tt.change(m)
		r, err := Inspect(m.bytes())
		if err != nil {
			t.Errorf("%s: inspect: %v", tt.name, err)
			continue
		}
		for i, p := range Profiles() {
			_, err := New(context.Background(), Config{Wasm: m.bytes(), Profile: p})
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s under %s: %v, want one line with %q", tt.name, p.Name, err, tt.want)
			}
			if v := r.Verdicts[i]; v.Loads || !strings.Contains(strings.Join(v.Missing, " | "), tt.want) {
				t.Errorf("%s: verdict %+v", tt.name, v)
			}
		}
	}
}

// The limit itself is allowed.
func TestMemoryAtTheLimit(t *testing.T) {
	m := minimal()
	m.memory = []byte{0, 2}
	for limit, want := range map[uint32]error{1: ErrMemory, 2: nil} {
		h, err := New(context.Background(), Config{Wasm: m.bytes(), MemoryLimitPages: limit})
		if !errors.Is(err, want) {
			t.Errorf("limit %d: %v", limit, err)
		}
		if err == nil {
			ok(t, h.Close())
		}
	}
}

// A gateway does not call these, so their types do not matter.
func TestExportsThatNobodyCalls(t *testing.T) {
	for name, change := range map[string]func(m *wasmModule){
		"main of a command":    func(m *wasmModule) { m.add("main", "F:F", []byte{0x20, 0}) },
		"start of a reactor":   func(m *wasmModule) { m.add("_initialize", ":"); m.add("_start", "i:i", i32s(0)) },
		"the second allocator": func(m *wasmModule) { m.add("proxy_on_memory_allocate", "I:I", []byte{0x20, 0}) },
		"foreign in the first ABI": func(m *wasmModule) {
			m.funcs[0].name = "proxy_abi_version_0_1_0"
			m.add("proxy_on_foreign_function", ":")
		},
		"a name of its own": func(m *wasmModule) { m.add("proxy_on_something_else", "F:") },
		"two markers":       func(m *wasmModule) { m.add("proxy_abi_version_0_2_0", ":") },
	} {
		m := minimal()
		change(m)
		h, err := New(context.Background(), Config{Wasm: m.bytes()})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ok(t, h.Close())
		r, err := Inspect(m.bytes())
		ok(t, err)
		for _, v := range r.Verdicts {
			if !v.Loads {
				t.Errorf("%s: %+v", name, v)
			}
		}
	}
}
