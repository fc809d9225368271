package hostsim

import (
	"context"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// withGlobals is a module that imports a function and has three globals, of which two change.
var withGlobals = slices.Concat([]byte{0, 'a', 's', 'm', 1, 0, 0, 0},
	section(1, 1, []byte{0x60, 0, 0}),
	section(2, 1, slices.Concat(text("m"), text("f"), []byte{0, 0})),
	section(6, 3, []byte{
		0x7f, 1, 0x41, 0x83, 0x01, 0x0b, // i32 131
		0x7e, 0, 0x42, 5, 0x0b,
		0x7c, 1, 0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x0b, // f64 1
	}),
	section(7, 1, append(text("three"), externGlobal, 2)))

func TestExposeGlobals(t *testing.T) {
	wasm, globals, err := exposeGlobals(withGlobals)
	if err != nil || !slices.Equal(globals, []int{0, 2}) {
		t.Fatalf("globals %v, err %v", globals, err)
	}
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	compiled, err := r.CompileModule(ctx, wasm)
	ok(t, err)
	if n := len(compiled.ImportedFunctions()); n != 1 {
		t.Errorf("%d imported functions", n)
	}
	wasm, globals, err = exposeGlobals(guest(t, "probe"))
	if err != nil || len(globals) == 0 {
		t.Fatalf("probe: globals %v, err %v", globals, err)
	}
	module, err := r.CompileModule(ctx, wasm)
	ok(t, err)
	mod, err := r.InstantiateModule(ctx, imports(ctx, t, r, module), wazero.NewModuleConfig().WithStartFunctions())
	ok(t, err)
	for _, i := range globals {
		if _, mutable := mod.ExportedGlobal(globalExport(i)).(api.MutableGlobal); !mutable {
			t.Errorf("global %d cannot be set", i)
		}
	}
}

// imports gives the runtime an empty function for each import.
func imports(ctx context.Context, t *testing.T, r wazero.Runtime, module wazero.CompiledModule) wazero.CompiledModule {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range module.ImportedFunctions() {
		from, name, _ := f.Import()
		if builders[from] == nil {
			builders[from] = r.NewHostModuleBuilder(from)
		}
		builders[from].NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {}), f.ParamTypes(), f.ResultTypes()).Export(name)
	}
	for _, b := range builders {
		_, err := b.Instantiate(ctx)
		ok(t, err)
	}
	return module
}

// A module that cannot be read stays as it is.
func TestExposeGlobalsOfGarbage(t *testing.T) {
	for n := range len(withGlobals) {
		if wasm, globals, _ := exposeGlobals(withGlobals[:n]); len(wasm) != n || globals != nil {
			t.Errorf("%d bytes: %d bytes, globals %v", n, len(wasm), globals)
		}
	}
	for _, mutant := range [][]byte{{sectionGlobal, 5, 0xff, 0xff, 0xff, 0xff, 0x0f}, {sectionExport, 1, 0x80}, {1, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		wasm := slices.Concat([]byte{0, 'a', 's', 'm', 1, 0, 0, 0}, mutant)
		if got, _, err := exposeGlobals(wasm); err == nil || len(got) != len(wasm) {
			t.Errorf("% x: err %v", mutant, err)
		}
	}
}
