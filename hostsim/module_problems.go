package hostsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// callbackSignatures has the parameters and, after a colon, the result of each export that a gateway calls: one letter a
// value, i for i32. A gateway refuses a module in which one of them differs. Source: proxy-wasm-cpp-host,
// include/proxy-wasm/wasm.h, and src/v8/v8.cc, getModuleFunctionImpl.
var callbackSignatures = map[string]string{
	"_initialize": ":", "_start": ":", "main": "ii:i",
	"malloc": "i:i", "proxy_on_memory_allocate": "i:i",
	"proxy_on_context_create": "ii:", "proxy_on_vm_start": "ii:i", "proxy_on_configure": "ii:i", "proxy_on_tick": "i:",
	"proxy_on_queue_ready": "ii:", "proxy_on_foreign_function": "iii:",
	"proxy_on_new_connection": "i:i", "proxy_on_downstream_data": "iii:i", "proxy_on_upstream_data": "iii:i",
	"proxy_on_downstream_connection_close": "ii:", "proxy_on_upstream_connection_close": "ii:",
	"proxy_on_request_headers": "iii:i", "proxy_on_request_body": "iii:i",
	"proxy_on_request_trailers": "ii:i", "proxy_on_request_metadata": "ii:i",
	"proxy_on_response_headers": "iii:i", "proxy_on_response_body": "iii:i",
	"proxy_on_response_trailers": "ii:i", "proxy_on_response_metadata": "ii:i",
	"proxy_on_http_call_response":            "iiiii:",
	"proxy_on_grpc_receive_initial_metadata": "iii:", "proxy_on_grpc_receive_trailing_metadata": "iii:",
	"proxy_on_grpc_receive": "iii:", "proxy_on_grpc_close": "iii:",
	"proxy_on_log": "i:", "proxy_on_done": "i:i", "proxy_on_delete": "i:",
}

// callbackSignature is what a gateway expects of an export, or "" where it does not call it in a module of that ABI.
func callbackSignature(name, abi string, exports map[string]api.FunctionDefinition) string {
	_, reactor := exports["_initialize"]
	switch {
	case name == "main" && !reactor, name == "_start" && reactor,
		name == "proxy_on_memory_allocate" && exports["malloc"] != nil,
		name == "proxy_on_foreign_function" && abi == "0.1.0":
		return ""
	case abi == "0.1.0" && (name == "proxy_on_request_headers" || name == "proxy_on_response_headers"):
		return "ii:i" // without end of stream
	}
	return callbackSignatures[name]
}

// moduleProblems names what keeps every gateway from running a module that has its marker and allocator: callbacks of the
// wrong type, and no memory to exchange data in.
func moduleProblems(m wazero.CompiledModule, abi string) (problems []string) {
	exports := m.ExportedFunctions()
	for _, name := range slices.Sorted(maps.Keys(exports)) {
		def := exports[name]
		want := callbackSignature(name, abi, exports)
		if got := typeNames(def.ParamTypes(), def.ResultTypes()); want != "" && got.letters() != want {
			problems = append(problems, fmt.Sprintf("export %s as %s (a gateway calls %s)", name, got, spelled(want)))
		}
	}
	if len(m.ExportedMemories()) == 0 && len(m.ImportedMemories()) == 0 {
		problems = append(problems, "no export of a memory")
	}
	return problems
}

// letters writes a signature as callbackSignatures does, with ? for what is not an i32.
func (s Signature) letters() string {
	var b strings.Builder
	for i, types := range [][]string{s.Params, s.Results} {
		if i == 1 {
			b.WriteByte(':')
		}
		for _, t := range types {
			if t == "i32" {
				b.WriteByte('i')
			} else {
				b.WriteByte('?')
			}
		}
	}
	return b.String()
}

// spelled is the opposite of letters.
func spelled(letters string) Signature {
	var s Signature
	types := &s.Params
	for _, c := range letters {
		if c == ':' {
			types = &s.Results
			continue
		}
		*types = append(*types, "i32")
	}
	return s
}

// declaresTooMuch is the error of a module whose memory is over the limit from the start, or nil.
func declaresTooMuch(m wazero.CompiledModule, limit uint32) error {
	for _, def := range m.ExportedMemories() {
		if def.Min() > limit {
			return fmt.Errorf("%w: the module declares %d pages of memory, more than the limit of %d", ErrMemory, def.Min(), limit)
		}
	}
	return nil
}

// otherImports names the imports that are not functions, with their kind. Those that gateways take are said to be so, for
// hostsim cannot offer them. wasm is valid.
func otherImports(wasm []byte) (names []string) {
	r := &wasmReader{b: wasm, at: len(wasmHeader)}
	for r.more() {
		if id, content := r.section(); id == sectionImport {
			names = content.otherImports()
		}
	}
	return names
}

func (r *wasmReader) otherImports() (names []string) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		name := string(r.bytes(r.u32())) + "." + string(r.bytes(r.u32()))
		switch r.byte() {
		case externFunction:
			r.u32()
		case externTable:
			r.byte()
			r.limits()
			names = append(names, name+" as a table (hostsim offers functions only; Envoy would link it)")
		case externMemory:
			r.limits()
			names = append(names, name+" as a memory (hostsim offers functions only; Envoy would link it)")
		case externGlobal:
			r.bytes(2)
			names = append(names, name+" as a global (gateways offer functions only)")
		default:
			r.err = errModule
		}
	}
	return names
}
