package hostsim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// BenchmarkLifecycle is a stream with a body of 2 KB in a guest that makes five host calls: its mean, the slowest of a hundred, and
// the guest's memory at the end, which must not depend on how many there were.
func BenchmarkLifecycle(b *testing.B) {
	h := callingHost(b, Config{})
	body := make([]byte, 2048)
	took := make([]time.Duration, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		s := h.Worker(0).NewStream()
		_, err1 := s.RequestHeaders(benchHeaders, false)
		_, err2 := s.RequestBody(body, true)
		_, err3 := s.ResponseHeaders(reply, true)
		if err4 := s.End(EndNormal); err1 != nil || err2 != nil || err3 != nil || err4 != nil {
			b.Fatal(err1, err2, err3, err4)
		}
		if len(took) < cap(took) {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
	b.ReportMetric(float64(h.Worker(0).Memory())/(1<<20), "guest-MiB")
}

// callLoop is a module that calls env.f(i32, i32) i32 as often as run's argument says.
var callLoop = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x0b\x02\x60\x02\x7f\x7f\x01\x7f\x60\x01\x7f\x00" + // types: (i32, i32) i32, (i32)
	"\x02\x09\x01\x03env\x01f\x00\x00" + // import env.f
	"\x03\x02\x01\x01" + // one function, of the second type
	"\x07\x07\x01\x03run\x00\x01" + // export run
	"\x0a\x17\x01\x15\x00\x03\x40\x41\x01\x41\x02\x10\x00\x1a\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b\x0b")

// BenchmarkHostCall is a call of a host function by a guest, one that takes its parameters off the stack, as hostsim's do,
// and one that wazero calls by reflection.
func BenchmarkHostCall(b *testing.B) {
	ctx := context.Background()
	i32 := api.ValueTypeI32
	for _, c := range []struct {
		name  string
		bound func(wazero.HostFunctionBuilder) wazero.HostFunctionBuilder
	}{
		{"by=stack", func(f wazero.HostFunctionBuilder) wazero.HostFunctionBuilder {
			return f.WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
				stack[0] = uint64(api.DecodeU32(stack[0]) + api.DecodeU32(stack[1]))
			}), []api.ValueType{i32, i32}, []api.ValueType{i32})
		}},
		{"by=reflection", func(f wazero.HostFunctionBuilder) wazero.HostFunctionBuilder {
			return f.WithFunc(func(_ context.Context, _ api.Module, x, y uint32) uint32 { return x + y })
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			rt := wazero.NewRuntime(ctx)
			defer rt.Close(ctx)
			if _, err := c.bound(rt.NewHostModuleBuilder("env").NewFunctionBuilder()).Export("f").Instantiate(ctx); err != nil {
				b.Fatal(err)
			}
			m, err := rt.Instantiate(ctx, callLoop)
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			if _, err := m.ExportedFunction("run").Call(ctx, uint64(b.N)); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkModule is what it takes to have a module of official Go ready: compiling it, reading its code from a directory
// where an earlier process left it, and making an instance of it.
func BenchmarkModule(b *testing.B) {
	ctx, wasm := context.Background(), guest(b, "mute")
	compile := func(b *testing.B, dir string) {
		config := wazero.NewRuntimeConfig()
		if dir != "" {
			cache, err := wazero.NewCompilationCacheWithDir(dir)
			if err != nil {
				b.Fatal(err)
			}
			defer cache.Close(ctx)
			config = config.WithCompilationCache(cache)
		}
		rt := wazero.NewRuntimeWithConfig(ctx, config)
		defer rt.Close(ctx)
		if _, err := rt.CompileModule(ctx, wasm); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("do=compile", func(b *testing.B) {
		for b.Loop() {
			compile(b, "")
		}
	})
	b.Run("do=read", func(b *testing.B) {
		dir := b.TempDir()
		compile(b, dir)
		for b.Loop() {
			compile(b, dir)
		}
	})
	b.Run("do=instantiate", func(b *testing.B) {
		rt := wazero.NewRuntime(ctx)
		defer rt.Close(ctx)
		wasi_snapshot_preview1.MustInstantiate(ctx, rt)
		compiled, err := rt.CompileModule(ctx, wasm)
		if err != nil {
			b.Fatal(err)
		}
		env, made := rt.NewHostModuleBuilder("env"), map[string]bool{}
		for _, def := range compiled.ImportedFunctions() {
			if module, name, _ := def.Import(); module == "env" && !made[name] {
				made[name] = true
				env.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
					stack[0] = 0
				}), def.ParamTypes(), def.ResultTypes()).Export(name)
			}
		}
		if _, err := env.Instantiate(ctx); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			m, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
			if err != nil {
				b.Fatal(err)
			}
			m.Close(ctx)
		}
	})
}
