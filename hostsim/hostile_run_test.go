package hostsim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// callTimeout is long enough for any start on a busy machine.
const callTimeout = 100 * time.Millisecond

// lifetime starts a module and takes a stream with a body through it, and returns the first error.
func lifetime(t *testing.T, c Config) error {
	t.Helper()
	if c.PluginConfig == nil {
		c.PluginConfig = []byte("config")
	}
	h, err := New(context.Background(), c)
	if err != nil {
		return err
	}
	defer func() { ok(t, h.Close()) }()
	s := h.Worker(0).NewStream()
	_, err = s.RequestHeaders(get, false)
	if err == nil {
		_, err = s.RequestBody([]byte("body"), true)
	}
	if err == nil {
		_, err = s.ResponseHeaders(reply, true)
	}
	return errors.Join(err, s.End(EndNormal))
}

// readsConfig adds a configure that has the host allocate, and so call malloc.
func readsConfig(m *wasmModule) {
	if len(m.imports) == 0 {
		m.importing("proxy_get_buffer_bytes")
	}
	m.add("proxy_on_configure", "ii:i", i32s(7, 0, 100, 0, 4), callOf(0), drop, i32s(1))
}

// Where a module may hang, recurse or trap, and how an author hears of it.
var places = []struct {
	name  string // as in TrapError.Export
	build func(m *wasmModule, body []byte)
}{
	{"the start section", func(m *wasmModule, body []byte) { m.start = m.add("f", ":", body) }},
	{"_initialize", func(m *wasmModule, body []byte) { m.add("_initialize", ":", body) }},
	{"main", func(m *wasmModule, body []byte) { m.add("_initialize", ":"); m.add("main", "ii:i", body, i32s(0)) }},
	{"_start", func(m *wasmModule, body []byte) { m.add("_start", ":", body) }},
	{"proxy_on_context_create", func(m *wasmModule, body []byte) { m.add("proxy_on_context_create", "ii:", body) }},
	{"proxy_on_vm_start", func(m *wasmModule, body []byte) { m.add("proxy_on_vm_start", "ii:i", body, i32s(1)) }},
	{"proxy_on_configure", func(m *wasmModule, body []byte) { m.add("proxy_on_configure", "ii:i", body, i32s(1)) }},
	{"proxy_on_configure", func(m *wasmModule, body []byte) { // by way of malloc
		m.funcs[1].body = slices.Concat(body, m.funcs[1].body)
		readsConfig(m)
	}},
	{"proxy_on_request_headers", func(m *wasmModule, body []byte) { m.add("proxy_on_request_headers", "iii:i", body, i32s(0)) }},
	{"proxy_on_request_body", func(m *wasmModule, body []byte) { m.add("proxy_on_request_body", "iii:i", body, i32s(0)) }},
	{"proxy_on_response_headers", func(m *wasmModule, body []byte) { m.add("proxy_on_response_headers", "iii:i", body, i32s(0)) }},
	{"proxy_on_log", func(m *wasmModule, body []byte) { m.add("proxy_on_log", "i:", body) }},
	{"proxy_on_done", func(m *wasmModule, body []byte) { m.add("proxy_on_done", "i:i", body, i32s(1)) }},
	{"proxy_on_delete", func(m *wasmModule, body []byte) { m.add("proxy_on_delete", "i:", body) }},
}

// checkTrap compares an error with what an author needs to know.
func checkTrap(t *testing.T, place string, err error, kind error, reason string) {
	t.Helper()
	var trap *TrapError
	switch {
	case !errors.As(err, &trap) || !errors.Is(err, ErrTrap):
		t.Errorf("%s: %v is not a trap", place, err)
	case trap.Export != place || trap.Reason != reason:
		t.Errorf("%s: in %s: %q, want %q", place, trap.Export, trap.Reason, reason)
	}
	for _, k := range []error{ErrDeadline, ErrMemory, ErrStack} {
		if errors.Is(err, k) != (k == kind) {
			t.Errorf("%s: %v: wraps %v: %v", place, err, k, errors.Is(err, k))
		}
	}
}

func TestModulesThatHang(t *testing.T) {
	for _, p := range places {
		m := minimal()
		p.build(m, forever)
		checkTrap(t, p.name, lifetime(t, Config{Wasm: m.bytes(), CallTimeout: callTimeout}), ErrDeadline, "ran longer than 100ms")
	}
}

func TestModulesThatTrap(t *testing.T) {
	for i, p := range places {
		m := minimal()
		p.build(m, unreachable)
		reason := "unreachable"
		if i > 0 && places[i-1].name == p.name { // configure by way of malloc
			reason = "in malloc: unreachable"
		}
		for _, timeout := range []time.Duration{0, time.Minute} {
			err := lifetime(t, Config{Wasm: m.bytes(), CallTimeout: timeout})
			checkTrap(t, p.name, err, nil, reason)
			var trap *TrapError
			if errors.As(err, &trap) && len(trap.Stack) == 0 {
				t.Errorf("%s: no stack", p.name)
			}
		}
	}
}

func TestModulesThatRecurse(t *testing.T) {
	for i, p := range places {
		malloc := i > 0 && places[i-1].name == p.name
		if !malloc && !slices.Contains([]string{"the start section", "proxy_on_request_headers", "proxy_on_delete"}, p.name) {
			continue // it takes a while
		}
		m := minimal()
		if malloc {
			m.importing("proxy_get_buffer_bytes")
		}
		self := m.add("recurse", ":", nil)
		m.funcs[len(m.funcs)-1].body = callOf(self)
		p.build(m, callOf(self))
		checkTrap(t, p.name, lifetime(t, Config{Wasm: m.bytes()}), ErrStack, "called itself until the stack was exhausted")
	}
}

// A module that asks for memory without end is told no at the limit, and is judged by what it does then.
func TestModulesThatAllocateWithoutEnd(t *testing.T) {
	// loop: if memory.grow(1) is not -1, again; then trap
	greedy := slices.Concat([]byte{0x03, 0x40}, growByOne, i32s(0xffffffff), []byte{0x47, 0x0d, 0x00, 0x0b}, unreachable)
	for i, p := range places {
		m := minimal()
		m.memory = []byte{0, 1}
		p.build(m, greedy)
		reason := "asked for 65 pages of memory, more than the limit of 64, then: unreachable"
		if i > 0 && places[i-1].name == p.name {
			reason = "asked for 65 pages of memory, more than the limit of 64, then: in malloc: unreachable"
		}
		checkTrap(t, p.name, lifetime(t, Config{Wasm: m.bytes(), MemoryLimitPages: 64}), ErrMemory, reason)
	}
	m := minimal()
	m.memory = []byte{0, 1}
	m.add("proxy_on_log", "i:", []byte{0x03, 0x40}, growByOne, drop, []byte{0x0c, 0x00, 0x0b})
	checkTrap(t, "proxy_on_log", lifetime(t, Config{Wasm: m.bytes(), CallTimeout: callTimeout, MemoryLimitPages: 64}), ErrDeadline, "ran longer than 100ms")
}

// proc_exit ends a virtual machine wherever it is called, also in a start function, where Envoy refuses the call itself.
func TestModulesThatExit(t *testing.T) {
	for i, p := range places {
		m := minimal()
		m.imports = []wasmImport{{module: "wasi_snapshot_preview1", name: "proc_exit", params: typesOf("i")}}
		if i > 0 && places[i-1].name == p.name {
			continue // malloc needs the first import for itself
		}
		p.build(m, slices.Concat(i32s(0), callOf(0)))
		reason := "the module called proc_exit"
		if i < 4 {
			reason = "wasi_snapshot_preview1.proc_exit is not allowed during start-up"
		}
		checkTrap(t, p.name, lifetime(t, Config{Wasm: m.bytes()}), nil, reason)
	}
}

// The error says all that an author needs, one function a line.
func TestTrapErrorText(t *testing.T) {
	p := newProbe(t, "request_headers panic boom")
	_, err := p.Worker(0).NewStream().RequestHeaders(get, true)
	lines := strings.Split(err.Error(), "\n")
	if want := "hostsim: the virtual machine trapped in proxy_on_request_headers on worker 0: unreachable"; lines[0] != want {
		t.Errorf("first line %q, want %q", lines[0], want)
	}
	if text := err.Error(); !strings.Contains(text, "\n\tin main.run") || !strings.HasPrefix(lines[len(lines)-1], "\tin proxy_on_request_headers(i32,i32,i32) i32") {
		t.Errorf("stack\n%s", text)
	}
}
