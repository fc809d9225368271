package hostsim

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// caller is a host whose module does nothing but pass calls on to host functions, with whatever arguments a test wants and
// in whatever phase.
type caller struct {
	t testing.TB
	h *Host
	v *vm
}

// newCaller links every function that profile p offers to a module of that ABI version.
func newCaller(t testing.TB, abi string, p Profile, adjust ...func(*Config)) *caller {
	t.Helper()
	m := minimal()
	m.funcs[0].name = "proxy_abi_version_" + string([]byte{abi[0], '_', abi[2], '_', abi[4]})
	add := func(module string, f *hostFunc) {
		params, results := f.signature()
		im := wasmImport{module: module, name: f.name, params: params, results: results}
		fn := wasmFunc{name: module + "." + f.name, params: params, results: results}
		for i := range params {
			fn.body = append(fn.body, 0x20, byte(i)) // local.get
		}
		fn.body = append(append(fn.body, 0x10), uleb(len(m.imports))...)
		m.imports = append(m.imports, im)
		m.funcs = append(m.funcs, fn)
	}
	for i := range envFuncs {
		if envFuncs[i].in(abi) {
			add("env", &envFuncs[i])
		}
	}
	for _, module := range []string{moduleWASI, moduleWASIUnstable} {
		for _, name := range p.WASI {
			add(module, findHostFunc(module, name))
		}
	}
	params := []api.ValueType{i32, i32, i32}
	if abi == abi010 {
		params = params[:2]
	}
	m.funcs = append(m.funcs, wasmFunc{name: "proxy_on_request_headers", params: params, results: []api.ValueType{i32},
		body: []byte{0x41, 1}})
	c := Config{Wasm: m.bytes(), Profile: p}
	for _, f := range adjust {
		f(&c)
	}
	h, err := New(t.Context(), c)
	ok(t, err)
	t.Cleanup(func() { ok(t, h.Close()) })
	out := &caller{t: t, h: h, v: h.Worker(0).vm}
	out.v.current = &out.v.activeRoot().guestContext
	return out
}

// call runs a host function, given as module.name, in that phase.
func (c *caller) call(ph phase, name string, args ...uint64) (uint32, error) {
	c.t.Helper()
	fn := c.v.mod.ExportedFunction(name)
	if fn == nil {
		return 0, fmt.Errorf("%s is not linked", name)
	}
	padded := make([]uint64, len(fn.Definition().ParamTypes()))
	copy(padded, args)
	c.v.phase = ph
	results, err := fn.Call(c.v.ctx, padded...)
	c.v.phase = phaseRun
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return uint32(results[0]), nil
}

// eachFunc calls f for every function that the profile offers to the module, as module.name.
func (c *caller) eachFunc(f func(module, name string)) {
	for _, b := range c.h.program.Load().bindings {
		f(b.label[:len(b.label)-len(b.fn.name)-1], b.fn.name)
	}
}

func fillFF(mem api.Memory, at uint32, size int) {
	for i := range size {
		mem.WriteByte(at+uint32(i), 0xff)
	}
}

// writtenHex returns n bytes of memory, and all up to the last that is not 0xff any more if they are more.
func writtenHex(mem api.Memory, at uint32, n int) string {
	b, _ := mem.Read(at, 64)
	for i := n; i < len(b); i++ {
		if b[i] != 0xff {
			n = i + 1
		}
	}
	return fmt.Sprintf("%x", b[:n])
}

// newAddressCaller is a caller in the name of a paused stream with everything there that functions answer from: 256 holds
// "plugin_id", 300 "key".
func newAddressCaller(t testing.TB, abi string) *caller {
	t.Helper()
	c := newCaller(t, abi, Envoy140(), func(c *Config) {
		c.VMConfig, c.PluginConfig = []byte("vm"), []byte("plugin")
		c.Properties = map[string][]byte{"plugin_id": []byte("x")}
		c.GRPCCall = func(*GRPCCall) bool { return true }
		c.HTTPCall = func(*HTTPCall) bool { return true }
		c.ForeignFunctions = map[string]ForeignFunction{"k": func(_ int, a []byte) ([]byte, Status) { return a, StatusOK }}
	})
	c.v.mem.WriteString(256, "plugin_id")
	c.v.mem.WriteString(300, "key")
	c.h.SharedData().Set("key", []byte("value"), 0)
	c.h.SharedData().Queue("k").Enqueue([]byte("m"))
	if abi != "0.1.0" {
		_, err := c.call(phaseRun, "env.proxy_define_metric", 0, 300, 1, 512)
		ok(t, err)
	}
	s := c.h.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, false)
	ok(t, err)
	c.v.current = &s.guestContext
	c.v.activeRoot().statusMessage = "x"
	return c
}

// addresses reads arguments.
func addresses(line string) []uint64 {
	var out []uint64
	for word := range strings.FieldsSeq(line) {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			n = far
		}
		out = append(out, n)
	}
	return out
}
