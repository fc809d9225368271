package hostsim

import (
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// wasmModule writes small modules by hand, for what no compiler would produce.
type wasmModule struct {
	imports []wasmImport
	funcs   []wasmFunc
	memory  []byte // flags and limits; nil for 1 to 16 pages
	hidden  bool   // the memory is not exported
	start   int    // function of the start section, 0 for none
	data    string // at address 16
}

type wasmImport struct {
	module, name    string
	params, results []api.ValueType
	other           []byte // kind and type of what is not a function
}

// wasmFunc is a function with its export name and body, without the final end.
type wasmFunc struct {
	name            string
	params, results []api.ValueType
	body            []byte
	locals          int // of type i32
}

var i32 = api.ValueTypeI32

// minimal has the exports without which nothing loads. Functions of further use are numbered from len(imports)+2.
func minimal() *wasmModule {
	return &wasmModule{funcs: []wasmFunc{
		{name: "proxy_abi_version_0_2_1"},
		{name: "malloc", params: []api.ValueType{i32}, results: []api.ValueType{i32}, body: []byte{0x41, 0x80, 0x08}}, // i32.const 1024
	}}
}

func (m *wasmModule) bytes() []byte {
	var types, imports, funcs, exports, code []byte
	n, numbered := 0, 0
	addType := func(params, results []api.ValueType) int {
		types = append(types, 0x60)
		types = append(append(types, uleb(len(params))...), params...)
		types = append(append(types, uleb(len(results))...), results...)
		n++
		return n - 1
	}
	for _, im := range m.imports {
		imports = append(imports, text(im.module)...)
		if im.other != nil {
			imports = append(append(imports, text(im.name)...), im.other...)
			continue
		}
		numbered++
		imports = append(append(imports, text(im.name)...), 0)
		imports = append(imports, uleb(addType(im.params, im.results))...)
	}
	for i, f := range m.funcs {
		funcs = append(funcs, uleb(addType(f.params, f.results))...)
		exports = append(append(exports, text(f.name)...), 0)
		exports = append(exports, uleb(numbered+i)...)
		locals := []byte{0}
		if f.locals > 0 {
			locals = []byte{1, byte(f.locals), i32}
		}
		body := append(append(locals, f.body...), 0x0b)
		code = append(append(code, uleb(len(body))...), body...)
	}
	exported := len(m.funcs)
	if !m.hidden {
		exports = append(append(exports, text("memory")...), 2, 0)
		exported++
	}
	if m.memory == nil {
		m.memory = []byte{1, 1, 16}
	}
	out := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	out = append(out, section(1, n, types)...)
	out = append(out, section(2, len(m.imports), imports)...)
	out = append(out, section(3, len(m.funcs), funcs)...)
	if len(m.memory) > 0 {
		out = append(out, section(5, 1, m.memory)...)
	}
	out = append(out, section(7, exported, exports)...)
	if m.start > 0 {
		out = append(out, append([]byte{8, 1}, uleb(m.start)...)...)
	}
	out = append(out, section(10, len(m.funcs), code)...)
	if m.data == "" {
		return out
	}
	return append(out, section(11, 1, append([]byte{0, 0x41, 16, 0x0b}, text(m.data)...))...)
}

func section(id byte, count int, content []byte) []byte {
	content = append(uleb(count), content...)
	return append(append([]byte{id}, uleb(len(content))...), content...)
}

func text(s string) []byte { return append(uleb(len(s)), s...) }

// Instructions, for bodies.
var (
	forever     = []byte{0x03, 0x40, 0x0c, 0x00, 0x0b} // loop, br 0, end
	unreachable = []byte{0x00}
	drop        = []byte{0x1a}
	growByOne   = []byte{0x41, 1, 0x40, 0} // memory.grow(1), leaves its answer
)

func callOf(f int) []byte { return append([]byte{0x10}, uleb(f)...) }

// i32s pushes constants.
func i32s(values ...uint32) []byte {
	var out []byte
	for _, v := range values {
		out = append(out, 0x41)
		for n := int64(int32(v)); ; {
			b := byte(n & 0x7f)
			n >>= 7
			if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
				out = append(out, b)
				break
			}
			out = append(out, b|0x80)
		}
	}
	return out
}

func typesOf(letters string) (types []api.ValueType) {
	for _, c := range letters {
		types = append(types, map[rune]api.ValueType{'i': i32, 'I': api.ValueTypeI64, 'f': api.ValueTypeF32, 'F': api.ValueTypeF64}[c])
	}
	return types
}

// add adds a function under its export name and signature, such as "ii:i", and returns its index.
func (m *wasmModule) add(name, signature string, body ...[]byte) int {
	params, results, _ := strings.Cut(signature, ":")
	m.funcs = append(m.funcs, wasmFunc{name: name, params: typesOf(params), results: typesOf(results), body: slices.Concat(body...)})
	return len(m.imports) + len(m.funcs) - 1
}

// importing adds a host function to a module that has none of its own functions' indexes in use yet, and returns its index.
func (m *wasmModule) importing(name string) int {
	fn := findHostFunc(moduleEnv, name)
	params, results := fn.signature()
	m.imports = append(m.imports, wasmImport{module: moduleEnv, name: name, params: params, results: results})
	return len(m.imports) - 1
}
