//go:build !wasip1

package abi

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// The package's tests once more in wasm, where some of it is another code. The host
// functions of a gateway are there and do nothing.
func TestInWasm(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "abi.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	code, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, r)
	module, err := r.CompileModule(ctx, code)
	if err != nil {
		t.Fatal(err)
	}
	env := r.NewHostModuleBuilder("env")
	for _, f := range module.ImportedFunctions() {
		if from, name, _ := f.Import(); from == "env" {
			env.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) { stack[0] = 0 }), f.ParamTypes(), f.ResultTypes()).Export(name)
		}
	}
	if _, err := env.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	c := wazero.NewModuleConfig().WithArgs("abi.test", "-test.v").WithStdout(t.Output()).WithStderr(t.Output()).WithSysWalltime().WithSysNanotime().
		WithFSConfig(wazero.NewFSConfig().WithDirMount(".", "/"))
	if _, err := r.InstantiateModule(ctx, module, c); err != nil {
		t.Fatal(err)
	}
}
