package hostsim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Signature is a function's parameter and result types: "i32", "i64", "f32", "f64" and so on.
type Signature struct {
	Params  []string `json:"params"`
	Results []string `json:"results"`
}

// String writes the types as (i32, i64) -> (i32).
func (s Signature) String() string {
	return "(" + strings.Join(s.Params, ", ") + ") -> (" + strings.Join(s.Results, ", ") + ")"
}

// Import is one function that a module needs from its host.
type Import struct {
	Module string `json:"module"`
	Name   string `json:"name"`
	Signature

	params, results []api.ValueType
}

// Export is one function that a module offers to its host.
type Export struct {
	Name string `json:"name"`
	Signature
	// Callback is true for a proxy-wasm callback, start function or allocator, which a host would call.
	Callback bool `json:"callback"`
}

// Verdict says whether a profile's gateway would load a module.
type Verdict struct {
	Profile string `json:"profile"`
	Loads   bool   `json:"loads"`
	// Missing names what stands in the way: each import that the gateway lacks, and what the module fails to export.
	Missing []string `json:"missing,omitempty"`
}

// Report is what Inspect finds in a module.
type Report struct {
	// Size is the binary's size in bytes.
	Size int `json:"size"`
	// ABI is the version in the marker export, such as "0.2.1", or "" without one.
	ABI string `json:"abi"`
	// Imports and Exports are the functions, in the module's order for imports and by name for exports.
	Imports []Import `json:"imports"`
	Exports []Export `json:"exports"`
	// MemoryMin and MemoryMax are the sizes that the module declares for its memory, in bytes. MemoryMax is 0 where it
	// declares none.
	MemoryMin uint64 `json:"memory_min"`
	MemoryMax uint64 `json:"memory_max,omitempty"`
	// Verdicts has one entry per profile, the default one first.
	Verdicts []Verdict `json:"verdicts"`
}

// pageSize is WebAssembly's.
const pageSize = 64 << 10

// Inspect reads a module without running it. The error wraps ErrABI when it is not valid WebAssembly.
func Inspect(wasm []byte) (*Report, error) {
	ctx := context.Background()
	// The interpreter reads and validates a module in a fraction of the time that compiling it takes.
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { _ = rt.Close(ctx) }()
	compiled, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrABI, err)
	}
	names := exportNames(compiled)
	r := &Report{Size: len(wasm), ABI: abiOf(names), Imports: importsOf(compiled), Exports: exportsOf(compiled)}
	for _, m := range compiled.ExportedMemories() {
		r.MemoryMin = uint64(m.Min()) * pageSize
		if limit, ok := m.Max(); ok {
			r.MemoryMax = uint64(limit) * pageSize
		}
	}
	problem := exportProblem(names)
	others := slices.Concat(otherImports(wasm), moduleProblems(compiled, r.ABI))
	if err := declaresTooMuch(compiled, DefaultMemoryLimitPages); err != nil {
		others = append(others, err.Error())
	}
	for _, p := range Profiles() {
		missing := p.lacks(r.Imports, r.ABI)
		if problem != "" {
			missing = append(missing, problem)
		}
		missing = append(missing, others...)
		r.Verdicts = append(r.Verdicts, Verdict{Profile: p.Name, Loads: len(missing) == 0, Missing: missing})
	}
	return r, nil
}

func exportNames(m wazero.CompiledModule) map[string]bool {
	names := map[string]bool{}
	for name := range m.ExportedFunctions() {
		names[name] = true
	}
	return names
}

func exportsOf(m wazero.CompiledModule) []Export {
	out := make([]Export, 0, len(m.ExportedFunctions()))
	for name, def := range m.ExportedFunctions() {
		out = append(out, Export{Name: name, Signature: typeNames(def.ParamTypes(), def.ResultTypes()),
			Callback: slices.Contains(callbackNames, name)})
	}
	slices.SortFunc(out, func(a, b Export) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func importsOf(m wazero.CompiledModule) []Import {
	out := make([]Import, 0, len(m.ImportedFunctions()))
	for _, def := range m.ImportedFunctions() {
		module, name, _ := def.Import()
		out = append(out, Import{Module: module, Name: name, Signature: typeNames(def.ParamTypes(), def.ResultTypes()),
			params: def.ParamTypes(), results: def.ResultTypes()})
	}
	return out
}

// matches compares an import's type with what the gateway offers.
func (im Import) matches(fn *hostFunc) bool {
	params, results := fn.signature()
	return slices.Equal(im.params, params) && slices.Equal(im.results, results)
}

func signatureOf(fn *hostFunc) Signature {
	params, results := fn.signature()
	return typeNames(params, results)
}

func typeNames(params, results []api.ValueType) Signature {
	names := func(types []api.ValueType) []string {
		out := make([]string, len(types))
		for i, t := range types {
			out[i] = api.ValueTypeName(t)
		}
		return out
	}
	return Signature{Params: names(params), Results: names(results)}
}
