package hostsim

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// Envoy starts a canary, the main thread and each worker: vm_start and configure run N+2 times.
func TestStartRunsInEveryVirtualMachine(t *testing.T) {
	p := newProbe(t, "configure log 2 hello", func(c *Config) {
		c.Workers = 2
		c.VMConfig = []byte("12345")
	})
	var got []int
	for _, e := range p.Logs() {
		if e.Message == "hello" {
			got = append(got, e.Worker)
		}
	}
	if len(got) != 4 || got[0] != Canary || got[1] != MainThread || got[2] != 0 || got[3] != 1 {
		t.Errorf("configured %v, want canary, main, 0, 1", got)
	}
	c := p.Counters().Callbacks
	if c["proxy_on_vm_start"] != 4 || c["proxy_on_configure"] != 4 || c["_initialize"] != 4 {
		t.Errorf("callbacks %v", c)
	}
	p.seen = 0
	p.expect(`
		> context_create 1 0
		> vm_start 1 5
		> configure 1 21
		hello
		log 2 hello = 0
		> context_create 1 0
		> vm_start 1 5
		> configure 1 21
		hello
		log 2 hello = 0`)
}

func TestStartRefused(t *testing.T) {
	for _, c := range []Config{
		{Wasm: guest(t, "probe"), VMConfig: []byte("refuse")},
		{Wasm: guest(t, "probe"), PluginConfig: []byte("configure return 0")},
	} {
		if _, err := New(context.Background(), c); !errors.Is(err, ErrRefused) {
			t.Errorf("err %v, want ErrRefused", err)
		}
	}
	_, err := New(context.Background(), Config{Wasm: guest(t, "probe"), PluginConfig: []byte("configure panic early")})
	if !errors.Is(err, ErrTrap) {
		t.Errorf("err %v, want ErrTrap", err)
	}
}

// A module that exports no callback at all serves traffic.
func TestMissingExportsAreNotCalled(t *testing.T) {
	h, err := New(context.Background(), Config{Wasm: guest(t, "bare")})
	ok(t, err)
	defer h.Close()
	s := h.Worker(0).NewStream()
	step, err := s.RequestHeaders(get, false)
	ok(t, err)
	if !step.Headers || step.Flow != Forward {
		t.Errorf("headers: %+v", step)
	}
	step, err = s.RequestBody([]byte("ab"), true)
	ok(t, err)
	if string(step.Data) != "ab" || !step.End {
		t.Errorf("body: %+v", step)
	}
	ok(t, s.End(EndNormal))
	for name := range h.Counters().Callbacks {
		if strings.HasPrefix(name, "proxy_on_") {
			t.Errorf("%s was called", name)
		}
	}
}

func TestImportGateNamesEveryMissingImport(t *testing.T) {
	m := minimal()
	m.imports = []wasmImport{
		{module: "env", name: "proxy_log", params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32}},
		{module: "env", name: "proxy_nonsense"},
		{module: "env", name: "proxy_done", params: []api.ValueType{i32}, results: []api.ValueType{i32}},
		{module: "wasi_snapshot_preview1", name: "fd_tell", params: []api.ValueType{i32, i32}, results: []api.ValueType{i32}},
		{module: "wasi_snapshot_preview1", name: "fd_nonsense", results: []api.ValueType{i32}},
		{module: "elsewhere", name: "f"},
	}
	for _, tt := range []struct {
		profile Profile
		want    string
	}{
		{Envoy136(), "env.proxy_nonsense | env.proxy_done as (i32) -> (i32) (it is () -> (i32)) | wasi_snapshot_preview1.fd_tell | wasi_snapshot_preview1.fd_nonsense | elsewhere.f"},
		{Envoy140(), "env.proxy_nonsense | env.proxy_done as (i32) -> (i32) (it is () -> (i32)) | wasi_snapshot_preview1.fd_nonsense | elsewhere.f"},
		{Permissive(), "env.proxy_done as (i32) -> (i32) (it is () -> (i32))"},
	} {
		_, err := New(context.Background(), Config{Wasm: m.bytes(), Profile: tt.profile})
		var missing *ImportError
		if !errors.As(err, &missing) || !errors.Is(err, ErrImports) {
			t.Fatalf("%s: err %v", tt.profile.Name, err)
		}
		if got := strings.Join(missing.Missing, " | "); got != tt.want {
			t.Errorf("%s: missing\n%s\nwant\n%s", tt.profile.Name, got, tt.want)
		}
		r, err := Inspect(m.bytes())
		ok(t, err)
		for _, v := range r.Verdicts {
			if v.Profile == tt.profile.Name && (v.Loads || strings.Join(v.Missing, " | ") != tt.want) {
				t.Errorf("verdict %+v", v)
			}
		}
	}
}

func TestABIMarkerAndAllocatorAreRequired(t *testing.T) {
	m := minimal()
	m.funcs[0].name = "proxy_abi_version_9_9_9"
	if _, err := New(context.Background(), Config{Wasm: m.bytes()}); !errors.Is(err, ErrABI) || !strings.Contains(err.Error(), "proxy_abi_version_0_2_1") {
		t.Errorf("without a marker: %v", err)
	}
	m = minimal()
	m.funcs[1].name = "allocate"
	if _, err := New(context.Background(), Config{Wasm: m.bytes()}); !errors.Is(err, ErrABI) || !strings.Contains(err.Error(), "malloc") {
		t.Errorf("without an allocator: %v", err)
	}
	if _, err := New(context.Background(), Config{Wasm: []byte("no")}); !errors.Is(err, ErrABI) {
		t.Errorf("not wasm: %v", err)
	}
	if _, err := New(context.Background(), Config{}); !errors.Is(err, ErrConfig) {
		t.Errorf("empty: %v", err)
	}
	for name, value := range map[string]string{"": "v", "A=B": "v", "A\x00": "v", "A": "v\x00"} {
		if _, err := New(context.Background(), Config{Wasm: minimal().bytes(), Env: map[string]string{name: value}}); !errors.Is(err, ErrConfig) {
			t.Errorf("Env %q=%q: %v", name, value, err)
		}
	}
}

func TestThreadName(t *testing.T) {
	for index, want := range map[int]string{MainThread: "main thread", Canary: "canary", 0: "worker 0", 255: "worker 255"} {
		if got := ThreadName(index); got != want {
			t.Errorf("%d is %q, want %q", index, got, want)
		}
	}
}

// While a module starts, proxy_log is legal and any other env function traps.
func TestStartUpIsARestrictedPhase(t *testing.T) {
	done := wasmImport{module: "env", name: "proxy_done", results: []api.ValueType{i32}}
	logs := wasmImport{module: "env", name: "proxy_log", params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32}}
	callDone := []byte{0x10, 0, 0x1a}                           // call 0, drop
	callLog := []byte{0x41, 2, 0x41, 0, 0x41, 0, 0x10, 0, 0x1a} // proxy_log(2, 0, 0)
	for _, tt := range []struct {
		name   string
		im     wasmImport
		body   []byte
		profil Profile
		traps  bool
	}{
		{"_initialize", done, callDone, Envoy140(), true},
		{"_start", done, callDone, Envoy136(), true},
		{"_initialize", done, callDone, Permissive(), false},
		{"_initialize", logs, callLog, Envoy140(), false},
	} {
		m := minimal()
		m.imports = []wasmImport{tt.im}
		m.funcs = append(m.funcs, wasmFunc{name: tt.name, body: tt.body})
		h, err := New(context.Background(), Config{Wasm: m.bytes(), Profile: tt.profil})
		if h != nil {
			defer h.Close()
		}
		if got := errors.Is(err, ErrTrap); got != tt.traps {
			t.Errorf("%s calls %s under %s: err %v, want a trap: %v", tt.name, tt.im.name, tt.profil.Name, err, tt.traps)
		}
		if tt.traps && !strings.Contains(err.Error(), "env.proxy_done is not allowed during start-up") {
			t.Errorf("err %v does not name the call", err)
		}
	}
}

// In the allocator, poll_oneoff is legal from 1.39 on only, and other env functions never.
func TestAllocationIsARestrictedPhase(t *testing.T) {
	for _, tt := range []struct {
		im      wasmImport
		body    []byte
		profile Profile
		traps   bool
	}{
		{wasmImport{module: "env", name: "proxy_done", results: []api.ValueType{i32}}, []byte{0x10, 0, 0x1a}, Envoy140(), true},
		{wasmImport{module: "env", name: "proxy_done", results: []api.ValueType{i32}}, []byte{0x10, 0, 0x1a}, Permissive(), false},
		{wasmImport{module: "wasi_unstable", name: "poll_oneoff", params: []api.ValueType{i32, i32, i32, i32}, results: []api.ValueType{i32}},
			[]byte{0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0x10, 0, 0x1a}, Envoy136(), true},
		{wasmImport{module: "wasi_unstable", name: "poll_oneoff", params: []api.ValueType{i32, i32, i32, i32}, results: []api.ValueType{i32}},
			[]byte{0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0x10, 0, 0x1a}, Envoy140(), false},
	} {
		m := minimal()
		bufferBytes := wasmImport{module: "env", name: "proxy_get_buffer_bytes", params: []api.ValueType{i32, i32, i32, i32, i32}, results: []api.ValueType{i32}}
		m.imports = []wasmImport{tt.im, bufferBytes}
		m.funcs[1].body = append(tt.body, m.funcs[1].body...)
		m.funcs = append(m.funcs, wasmFunc{name: "proxy_on_configure", params: []api.ValueType{i32, i32}, results: []api.ValueType{i32},
			body: []byte{0x41, 7, 0x41, 0, 0x41, 9, 0x41, 0, 0x41, 8, 0x10, 1, 0x45}}) // get_buffer_bytes(7, 0, 9, 0, 8) == 0
		h, err := New(context.Background(), Config{Wasm: m.bytes(), Profile: tt.profile, PluginConfig: []byte("x")})
		if h != nil {
			defer h.Close()
		}
		if got := errors.Is(err, ErrTrap); got != tt.traps {
			t.Errorf("%s in malloc under %s: err %v, want a trap: %v", tt.im.name, tt.profile.Name, err, tt.traps)
		}
	}
}

func TestInspect(t *testing.T) {
	r, err := Inspect(guest(t, "probe"))
	ok(t, err)
	if r.ABI != "0.2.1" || r.Size != len(guest(t, "probe")) || r.MemoryMin == 0 {
		t.Errorf("abi %q, size %d, memory %d", r.ABI, r.Size, r.MemoryMin)
	}
	var setMetric, callback bool
	for _, im := range r.Imports {
		setMetric = setMetric || im.Module == "env" && im.Name == "proxy_increment_metric" && im.Signature.String() == "(i32, i64) -> (i32)"
	}
	for _, e := range r.Exports {
		callback = callback || e.Name == "proxy_on_request_headers" && e.Callback && e.Signature.String() == "(i32, i32, i32) -> (i32)"
	}
	if !setMetric || !callback {
		t.Errorf("imports %v\nexports %v", r.Imports, r.Exports)
	}
	for _, v := range r.Verdicts {
		if !v.Loads {
			t.Errorf("%s: %v", v.Profile, v.Missing)
		}
	}
	if _, err := Inspect([]byte("\x00asm")); !errors.Is(err, ErrABI) {
		t.Errorf("err %v", err)
	}
}

func TestCompiledCodeIsCachedOnDisk(t *testing.T) {
	dir := t.TempDir()
	h, err := New(context.Background(), Config{Wasm: minimal().bytes(), CacheDir: dir})
	ok(t, err)
	ok(t, h.Close())
	files, err := os.ReadDir(dir)
	ok(t, err)
	if len(files) == 0 {
		t.Error("nothing was written to the cache directory")
	}
}
