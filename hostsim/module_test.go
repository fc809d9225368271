package hostsim

import "github.com/tetratelabs/wazero/api"

// wasmModule writes small modules by hand, for what no compiler would produce.
type wasmModule struct {
	imports []wasmImport
	funcs   []wasmFunc
}

type wasmImport struct {
	module, name    string
	params, results []api.ValueType
}

// wasmFunc is a function with its export name and body, without locals and the final end.
type wasmFunc struct {
	name            string
	params, results []api.ValueType
	body            []byte
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
	n := 0
	addType := func(params, results []api.ValueType) int {
		types = append(types, 0x60)
		types = append(append(types, leb(len(params))...), params...)
		types = append(append(types, leb(len(results))...), results...)
		n++
		return n - 1
	}
	for _, im := range m.imports {
		imports = append(imports, text(im.module)...)
		imports = append(append(imports, text(im.name)...), 0)
		imports = append(imports, leb(addType(im.params, im.results))...)
	}
	for i, f := range m.funcs {
		funcs = append(funcs, leb(addType(f.params, f.results))...)
		exports = append(append(exports, text(f.name)...), 0)
		exports = append(exports, leb(len(m.imports)+i)...)
		body := append(append([]byte{0}, f.body...), 0x0b)
		code = append(append(code, leb(len(body))...), body...)
	}
	exports = append(append(exports, text("memory")...), 2, 0)
	out := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	out = append(out, section(1, n, types)...)
	out = append(out, section(2, len(m.imports), imports)...)
	out = append(out, section(3, len(m.funcs), funcs)...)
	out = append(out, section(5, 1, []byte{1, 1, 16})...) // memory of 1 to 16 pages
	out = append(out, section(7, len(m.funcs)+1, exports)...)
	return append(out, section(10, len(m.funcs), code)...)
}

func section(id byte, count int, content []byte) []byte {
	content = append(leb(count), content...)
	return append(append([]byte{id}, leb(len(content))...), content...)
}

func text(s string) []byte { return append(leb(len(s)), s...) }

func leb(n int) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		if n >>= 7; n == 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
