package hostsim

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// BenchmarkHosts runs one module in hostsim, in the SDK's emulator, and on wazero with host functions that only answer, which
// is what any host on wazero costs at least. An iteration is a stream of five callbacks after its creation, with five host
// calls: a request header and a record of 1 KB read, a request header written, a response header read, a counter counted.
// The emulator makes two callbacks less: it has neither done nor delete.
func BenchmarkHosts(b *testing.B) {
	b.Run("host=hostsim", func(b *testing.B) { benchStreams(b, callingHost(b, Config{})) })
	b.Run("host=hostsim/workers=2", func(b *testing.B) { benchWorkers(b, callingHost(b, Config{Workers: 2})) })
	b.Run("host=hostsim/CallTimeout", func(b *testing.B) { benchStreams(b, callingHost(b, Config{CallTimeout: time.Minute})) })
	b.Run("host=emulator", benchEmulator)
	b.Run("host=wazero", benchWazero)
}

// callingHost is a host whose module makes its host calls.
func callingHost(b *testing.B, c Config) *Host {
	c.Wasm, c.PluginConfig = guest(b, "mute"), []byte("calls")
	h, err := New(context.Background(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close() })
	return h
}

// benchWorkers runs streams on all workers at once.
func benchWorkers(b *testing.B, h *Host) {
	streams := make(chan struct{})
	var done sync.WaitGroup
	for i := range h.Workers() {
		done.Go(func() {
			for range streams {
				for range 100 {
					s := h.Worker(i).NewStream()
					_, _ = s.RequestHeaders(benchHeaders, true)
					_, _ = s.ResponseHeaders(reply, true)
					_ = s.End(EndNormal)
				}
			}
		})
	}
	for i := 0; b.Loop(); i++ {
		if i%100 == 0 {
			streams <- struct{}{}
		}
	}
	close(streams)
	done.Wait()
}

func benchEmulator(b *testing.B) {
	vm, err := proxytest.NewWasmVMContext(startedBy(guest(b, "mute"), "_start"))
	if err != nil {
		b.Fatal(err)
	}
	defer vm.Close()
	e, reset := proxytest.NewHostEmulator(proxytest.NewEmulatorOption().WithVMContext(vm).WithPluginConfiguration([]byte("calls")))
	defer reset()
	e.StartPlugin()
	b.ReportAllocs()
	for b.Loop() {
		id := e.InitializeHttpContext()
		e.CallOnRequestHeaders(id, benchHeaders, true)
		e.CallOnResponseHeaders(id, reply, true)
		e.CompleteHttpContext(id)
	}
	if n, err := e.GetCounterMetric("streams"); err != nil || n == 0 {
		b.Errorf("the module has counted %d streams, error %v", n, err)
	}
}

// benchWazero answers each host call with as much memory as the real ones take, and keeps no state.
func benchWazero(b *testing.B) {
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	compiled, err := rt.CompileModule(ctx, guest(b, "mute"))
	if err != nil {
		b.Fatal(err)
	}
	var allocate api.Function
	stack := make([]uint64, 1)
	give := func(value []byte, at, size int) api.GoModuleFunc {
		return func(ctx context.Context, m api.Module, a []uint64) {
			stack[0] = uint64(len(value))
			if err := allocate.CallWithStack(ctx, stack); err != nil {
				b.Error(err)
			}
			m.Memory().Write(uint32(stack[0]), value)
			m.Memory().WriteUint32Le(uint32(a[at]), uint32(stack[0]))
			m.Memory().WriteUint32Le(uint32(a[size]), uint32(len(value)))
			a[0] = 0
		}
	}
	nothing := api.GoModuleFunc(func(_ context.Context, _ api.Module, a []uint64) { a[0] = 0 })
	answers := map[string]api.GoModuleFunc{
		"proxy_get_header_map_value": give([]byte("s-1234567890"), 3, 4), "proxy_get_shared_data": give(make([]byte, 1024), 2, 3),
	}
	env := rt.NewHostModuleBuilder("env")
	for _, def := range compiled.ImportedFunctions() {
		if module, name, _ := def.Import(); module == "env" {
			answer := answers[name]
			if answer == nil {
				answer = nothing
			}
			env.NewFunctionBuilder().WithGoModuleFunction(answer, def.ParamTypes(), def.ResultTypes()).Export(name)
		}
	}
	if _, err := env.Instantiate(ctx); err != nil {
		b.Fatal(err)
	}
	m, err := rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	if err != nil {
		b.Fatal(err)
	}
	allocate = m.ExportedFunction("proxy_on_memory_allocate")
	args := make([]uint64, 3)
	call := func(fn api.Function, a ...uint64) {
		copy(args, a)
		if err := fn.CallWithStack(ctx, args); err != nil {
			b.Fatal(err)
		}
	}
	var stream [6]api.Function
	for i, name := range []string{"context_create", "request_headers", "response_headers", "log", "done", "delete"} {
		stream[i] = m.ExportedFunction("proxy_on_" + name)
	}
	call(stream[0], 1, 0)
	call(m.ExportedFunction("proxy_on_configure"), 1, 5)
	b.ReportAllocs()
	for id := uint64(2); b.Loop(); id++ {
		call(stream[0], id, 1)
		call(stream[1], id, 4, 1)
		call(stream[2], id, 1, 1)
		for _, end := range stream[3:] {
			call(end, id)
		}
	}
}

// startedBy renames the export _initialize, which the emulator does not call, to a name that it does.
func startedBy(wasm []byte, name string) []byte {
	const exports = 7
	old := append([]byte{byte(len("_initialize"))}, "_initialize"...)
	out := bytes.Clone(wasm[:8]) // magic and version
	for at := 8; at < len(wasm); {
		size, n := binary.Uvarint(wasm[at+1:])
		body := wasm[at+1+n : at+1+n+int(size)]
		id := wasm[at]
		at += 1 + n + int(size)
		if id == exports {
			body = bytes.Replace(body, old, append([]byte{byte(len(name))}, name...), 1)
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}
	return out
}

// BenchmarkMemory reports what one more worker costs: the module's own linear memory, and with it all that the process
// holds for it.
func BenchmarkMemory(b *testing.B) {
	const workers = 64
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		h := callingHost(b, Config{Workers: workers})
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(h.Worker(0).Memory()), "guest-B/worker")
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(workers+1), "host-B/worker")
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
