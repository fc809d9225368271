package hostsim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// ImportError lists the imports that a profile's gateway lacks. It unwraps to ErrImports.
type ImportError struct {
	// Profile is the gateway's name.
	Profile string
	// Missing names each import as module.name, with the reason where the name alone does not tell it.
	Missing []string
}

// Error names every missing import.
func (e *ImportError) Error() string {
	return fmt.Sprintf("%v: %s does not offer %s", ErrImports, e.Profile, strings.Join(e.Missing, ", "))
}

// Unwrap returns ErrImports.
func (e *ImportError) Unwrap() error { return ErrImports }

// abiMarkers are the exports that name an ABI version, with the version. A module should have one; of several the newest
// counts here, where Envoy takes the one that the module lists first.
var abiMarkers = [...][2]string{
	{"proxy_abi_version_0_2_1", "0.2.1"},
	{"proxy_abi_version_0_2_0", "0.2.0"},
	{"proxy_abi_version_0_1_0", "0.1.0"},
}

// memoryCache keeps compiled code for the life of the process, for hosts without a directory: tests make many hosts of
// one module, and compiling takes seconds.
var memoryCache = sync.OnceValue(wazero.NewCompilationCache)

// dirCaches are the caches of directories. They live as long as the process, too: reading a module of 5 MB from disk takes
// 40 ms and more, for each host of a test.
var (
	dirCachesMu sync.Mutex
	dirCaches   = map[string]wazero.CompilationCache{}
)

func dirCache(dir string) (wazero.CompilationCache, error) {
	dirCachesMu.Lock()
	defer dirCachesMu.Unlock()
	if cache := dirCaches[dir]; cache != nil {
		return cache, nil
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err == nil {
		dirCaches[dir] = cache
	}
	return cache, err
}

// load compiles a module, checks that the profile's gateway would take it, and links its imports. The program is to be closed
// also where it comes with an error.
func (h *Host) load(ctx context.Context, wasm, vmConfig []byte) (*program, error) {
	p := &program{wasm: wasm, vmConfig: vmConfig}
	return p, h.compile(ctx, p)
}

func (h *Host) compile(ctx context.Context, p *program) error {
	cache := memoryCache()
	if h.config.CacheDir != "" {
		var err error
		if cache, err = dirCache(h.config.CacheDir); err != nil {
			return fmt.Errorf("hostsim: cache directory: %w", err)
		}
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCompilationCache(cache).WithCloseOnContextDone(h.config.CallTimeout > 0))
	wasm, globals, _ := exposeGlobals(p.wasm)
	compiled, err := p.runtime.CompileModule(ctx, wasm)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrABI, err)
	}
	p.compiled, p.globals = compiled, globals
	names := exportNames(compiled)
	if problem := exportProblem(names); problem != "" {
		return fmt.Errorf("%w: %s", ErrABI, problem)
	}
	p.abi = abiOf(names)
	if problems := moduleProblems(compiled, p.abi); len(problems) > 0 {
		return fmt.Errorf("%w: %s", ErrABI, strings.Join(problems, ", "))
	}
	if err := declaresTooMuch(compiled, h.config.MemoryLimitPages); err != nil {
		return err
	}
	imports := importsOf(compiled)
	if missing := append(h.config.Profile.lacks(imports, p.abi), otherImports(p.wasm)...); len(missing) > 0 {
		return &ImportError{Profile: h.config.Profile.Name, Missing: missing}
	}
	return h.link(ctx, p, imports)
}

// lacks names what stands in the way of linking imports of a module of that ABI version, "" if it names none.
func (p Profile) lacks(imports []Import, abi string) []string {
	var missing []string
	for _, im := range imports {
		fn := findHostFunc(im.Module, im.Name)
		wasi := im.Module == moduleWASI || im.Module == moduleWASIUnstable
		switch {
		case fn == nil || wasi && !slices.Contains(p.WASI, im.Name):
			if !p.AnyImport {
				missing = append(missing, im.Module+"."+im.Name)
			}
		case abi != "" && !fn.in(abi) && !p.AnyImport:
			missing = append(missing, fmt.Sprintf("%s.%s (a module of ABI %s cannot have it, only one of %s)", im.Module, im.Name, abi,
				strings.ReplaceAll(fn.abis, " ", " or ")))
		case !im.matches(fn):
			missing = append(missing, fmt.Sprintf("%s.%s as %s (it is %s)", im.Module, im.Name, im.Signature, signatureOf(fn)))
		}
	}
	return once(missing)
}

// once drops repetitions: official Go's linker lists some imports twice.
func once(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// link defines one host module for each that the module imports from, holding exactly what it imports.
func (h *Host) link(ctx context.Context, p *program, imports []Import) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, im := range imports {
		fn := findHostFunc(im.Module, im.Name)
		if fn == nil {
			fn = unknownFunc(im)
		}
		b := newBinding(im.Module, fn, len(p.bindings), h.config.Profile)
		p.bindings = append(p.bindings, b)
		if builders[im.Module] == nil {
			builders[im.Module] = p.runtime.NewHostModuleBuilder(im.Module)
		}
		run := b.run
		if fn.call == nil {
			run = b.runUnimplemented
		}
		call := b.observed(run)
		if h.config.Recorder != nil {
			b.params = paramsOf(fn.name, letters(im.params))
			call = b.recorded(call)
		}
		builders[im.Module].NewFunctionBuilder().
			WithGoModuleFunction(call, im.params, im.results).Export(im.Name)
	}
	for name, builder := range builders {
		if _, err := builder.Instantiate(ctx); err != nil {
			return fmt.Errorf("hostsim: link %s: %w", name, err)
		}
	}
	return nil
}

// letters spells parameter types as in hostFunc.
func letters(types []api.ValueType) string {
	b := make([]byte, len(types))
	for i, t := range types {
		b[i] = 'i'
		if t == api.ValueTypeI64 || t == api.ValueTypeF64 {
			b[i] = 'I'
		}
	}
	return string(b)
}

// unknownFunc stands for a function that no table has, under a profile that links anything.
func unknownFunc(im Import) *hostFunc {
	fn := &hostFunc{name: im.Name, void: len(im.results) == 0}
	if im.Module == moduleWASI || im.Module == moduleWASIUnstable {
		fn.call = wasiErrno(errnoNosys)
	}
	return fn
}

// exportProblem says why a module with these exports is not a proxy-wasm module, or "".
func exportProblem(names map[string]bool) string {
	if abiOf(names) == "" {
		return "no export proxy_abi_version_0_2_1, proxy_abi_version_0_2_0 or proxy_abi_version_0_1_0 (an official Go module exports it by //go:wasmexport)"
	}
	if !names["malloc"] && !names["proxy_on_memory_allocate"] {
		return "no export malloc or proxy_on_memory_allocate"
	}
	return ""
}

func abiOf(names map[string]bool) string {
	for _, m := range abiMarkers {
		if names[m[0]] {
			return m[1]
		}
	}
	return ""
}
