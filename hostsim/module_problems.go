package hostsim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	var b bytes.Buffer
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

var errImportSection = errors.New("malformed import section")

// otherImports names the imports that are not functions, with their kind. Those that gateways take are said to be so, for
// hostsim cannot offer them. wasm is valid.
func otherImports(wasm []byte) (names []string) {
	r := &importReader{b: wasm[8:]}
	for len(r.b) > 0 && r.err == nil {
		id := r.take(1)
		section := r.take(r.number())
		if r.err == nil && id[0] == 2 {
			return (&importReader{b: section}).imports()
		}
	}
	return nil
}

// importReader reads a module's binary. Source: WebAssembly core specification 2.0, "Binary Format", "Modules".
type importReader struct {
	b   []byte
	err error
}

func (r *importReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.err, r.b = errImportSection, nil
		return make([]byte, min(n, 1))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *importReader) number() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.err, r.b = errImportSection, nil
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *importReader) limits() {
	if r.take(1)[0]&1 != 0 {
		r.number()
	}
	r.number()
}

func (r *importReader) imports() (names []string) {
	for n := r.number(); n > 0 && r.err == nil; n-- {
		name := string(r.take(r.number())) + "." + string(r.take(r.number()))
		switch kind := r.take(1)[0]; kind {
		case 0:
			r.number()
		case 1:
			r.take(1)
			r.limits()
			names = append(names, name+" as a table (hostsim offers functions only; Envoy would link it)")
		case 2:
			r.limits()
			names = append(names, name+" as a memory (hostsim offers functions only; Envoy would link it)")
		case 3:
			r.take(2)
			names = append(names, name+" as a global (gateways offer functions only)")
		default:
			r.err = errImportSection
		}
	}
	return names
}
