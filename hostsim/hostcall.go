package hostsim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// The modules from which a proxy-wasm module imports.
const (
	moduleEnv          = "env"
	moduleWASI         = "wasi_snapshot_preview1"
	moduleWASIUnstable = "wasi_unstable"
)

// phase restricts what a module may call. Source: proxy-wasm-cpp-host, setRestrictedCallback.
type phase uint8

const (
	phaseRun   phase = iota // any callback
	phaseStart              // _initialize, main, _start
	phaseAlloc              // malloc, proxy_on_memory_allocate
)

func (p phase) String() string {
	switch p {
	case phaseStart:
		return "start-up"
	case phaseAlloc:
		return "memory allocation"
	}
	return "a callback"
}

// hostFunc is one function that a gateway offers.
type hostFunc struct {
	name string
	// params has one letter a parameter: i for i32, I for i64. The result is an i32 unless void.
	params string
	void   bool
	// abis are the ABI versions that have it, "" for all.
	abis string
	// call runs it. Nil means that no gateway has it: under a profile that links anything it answers UNIMPLEMENTED.
	call func(v *vm, args []uint64) uint32
}

// signature returns the function's wazero types.
func (f *hostFunc) signature() (params, results []api.ValueType) {
	for _, c := range f.params {
		if c == 'I' {
			params = append(params, api.ValueTypeI64)
		} else {
			params = append(params, api.ValueTypeI32)
		}
	}
	if !f.void {
		results = []api.ValueType{api.ValueTypeI32}
	}
	return params, results
}

// status adapts a function that answers a Status.
func status(f func(v *vm, a []uint64) Status) func(*vm, []uint64) uint32 {
	return func(v *vm, a []uint64) uint32 { return uint32(f(v, a)) }
}

// The versions of functions that not every ABI has. Source: proxy-wasm-cpp-host, WasmBase::registerCallbacks.
const (
	abi010  = "0.1.0"
	abi02x  = "0.2.0 0.2.1"
	abi021  = "0.2.1"
	abiEach = ""
)

// in says whether ABI version has the function.
func (f *hostFunc) in(version string) bool {
	return f.abis == abiEach || strings.Contains(f.abis, version)
}

// envFuncs lists the functions of ABI 0.2.1, those that only earlier ones have, and two of the C++ runtime. Names and
// parameters: proxy-wasm specification 0.2.1 and proxy-wasm-cpp-host, include/proxy-wasm/exports.h.
var envFuncs = []hostFunc{
	{name: "proxy_log", params: "iii", call: status(callLog)},
	{name: "proxy_get_log_level", params: "i", abis: abi021, call: status(callGetLogLevel)},
	{name: "proxy_get_status", params: "iii", call: status(callGetStatus)},
	{name: "proxy_get_current_time_nanoseconds", params: "i", call: status(callGetTime)},
	{name: "proxy_set_tick_period_milliseconds", params: "i", call: status(callSetTickPeriod)},
	{name: "proxy_set_effective_context", params: "i", call: status(callSetEffectiveContext)},
	{name: "proxy_done", call: status(callDone)},

	{name: "proxy_get_property", params: "iiii", call: status(callGetProperty)},
	{name: "proxy_set_property", params: "iiii", call: status(callSetProperty)},

	{name: "proxy_get_header_map_value", params: "iiiii", call: status(callGetHeader)},
	{name: "proxy_add_header_map_value", params: "iiiii", call: status(callAddHeader)},
	{name: "proxy_replace_header_map_value", params: "iiiii", call: status(callReplaceHeader)},
	{name: "proxy_remove_header_map_value", params: "iii", call: status(callRemoveHeader)},
	{name: "proxy_get_header_map_pairs", params: "iii", call: status(callGetHeaderPairs)},
	{name: "proxy_set_header_map_pairs", params: "iii", call: status(callSetHeaderPairs)},
	{name: "proxy_get_header_map_size", params: "ii", call: status(callGetHeaderSize)},

	{name: "proxy_get_buffer_bytes", params: "iiiii", call: status(callGetBuffer)},
	{name: "proxy_get_buffer_status", params: "iii", call: status(callGetBufferStatus)},
	{name: "proxy_set_buffer_bytes", params: "iiiii", call: status(callSetBuffer)},

	{name: "proxy_send_local_response", params: "iiiiiiii", call: status(callSendLocalResponse)},
	{name: "proxy_continue_stream", params: "i", abis: abi02x, call: status(callContinueStream)},
	{name: "proxy_close_stream", params: "i", abis: abi02x, call: status(callCloseStream)},

	{name: "proxy_get_shared_data", params: "iiiii", call: status(callGetSharedData)},
	{name: "proxy_set_shared_data", params: "iiiii", call: status(callSetSharedData)},
	{name: "proxy_register_shared_queue", params: "iii", call: status(callRegisterQueue)},
	{name: "proxy_resolve_shared_queue", params: "iiiii", call: status(callResolveQueue)},
	{name: "proxy_dequeue_shared_queue", params: "iii", call: status(callDequeue)},
	{name: "proxy_enqueue_shared_queue", params: "iii", call: status(callEnqueue)},

	{name: "proxy_define_metric", params: "iiii", call: status(callDefineMetric)},
	{name: "proxy_increment_metric", params: "iI", call: status(callIncrementMetric)},
	{name: "proxy_record_metric", params: "iI", call: status(callRecordMetric)},
	{name: "proxy_get_metric", params: "ii", call: status(callGetMetric)},

	{name: "proxy_http_call", params: "iiiiiiiiii", call: status(callHTTPCall)},
	{name: "proxy_grpc_call", params: "iiiiiiiiiiii", call: status(callGRPCCall)},
	{name: "proxy_grpc_stream", params: "iiiiiiiii", call: status(callGRPCStream)},
	{name: "proxy_grpc_send", params: "iiii", call: status(callGRPCSend)},
	{name: "proxy_grpc_cancel", params: "i", call: status(callGRPCCancel)},
	{name: "proxy_grpc_close", params: "i", call: status(callGRPCClose)},
	{name: "proxy_call_foreign_function", params: "iiiiii", call: status(callForeignFunction)},

	{name: "proxy_get_configuration", params: "ii", abis: abi010, call: status(callGetConfiguration)},
	{name: "proxy_continue_request", abis: abi010, call: status(callContinueRequest)},
	{name: "proxy_continue_response", abis: abi010, call: status(callContinueResponse)},
	{name: "proxy_clear_route_cache", abis: abi010, call: status(callClearRouteCache)},

	{name: "pthread_equal", params: "ii", call: callPthreadEqual},
	{name: "emscripten_notify_memory_growth", params: "i", void: true, call: callNotifyMemoryGrowth},
}

// findHostFunc returns what module offers under name, or nil.
func findHostFunc(module, name string) *hostFunc {
	table := envFuncs
	switch module {
	case moduleWASI, moduleWASIUnstable:
		table = wasiFuncs
	case moduleEnv:
	default:
		return nil
	}
	for i := range table {
		if table[i].name == name {
			return &table[i]
		}
	}
	return nil
}

// binding is a host function as one host links it: with its place in the counters and its legal phases.
type binding struct {
	label string // module.name, as in Counters
	fn    *hostFunc
	index int
	legal [3]bool // by phase
	// params are named for recordings.
	params []param
	touch  touch // nil for a call that touches nothing that workers share
}

func newBinding(module string, fn *hostFunc, index int, p Profile) *binding {
	b := &binding{label: module + "." + fn.name, fn: fn, index: index}
	if module == moduleEnv {
		b.touch = touches[fn.name]
	}
	b.legal = [3]bool{
		phaseRun:   true,
		phaseStart: p.StartCalls == nil || slices.Contains(p.StartCalls, fn.name),
		phaseAlloc: p.AllocCalls == nil || slices.Contains(p.AllocCalls, fn.name),
	}
	return b
}

// OnHostCall installs a function that is asked before each call of a host function that returns a status, such as
// env.proxy_get_shared_data, on the worker's goroutine. If instead is true the call does nothing and answers that status:
// a fault of the gateway, or with StatusOK an answer that was never written. Nil removes it. It is for faults that depend
// on what a test sees; InjectFaults takes the others as data, and comes first.
func (h *Host) OnHostCall(f func(worker int, name string) (answer Status, instead bool)) {
	if f == nil {
		h.callHook.Store(nil)
		return
	}
	h.callHook.Store(&f)
}

// run is what wazero calls. Parameters and results share the stack; upper halves of i32 parameters may hold anything.
func (b *binding) run(ctx context.Context, _ api.Module, stack []uint64) {
	v := ctx.(*vmContext).vm
	v.hostCalls[b.index]++
	if !b.legal[v.phase] {
		panic(fmt.Errorf("%s is not allowed during %s", b.label, v.phase))
	}
	step := b.giveWay(v, stack)
	if f := v.host.faults.Load(); f != nil && b.fault(v, f, stack) {
		step.answered(stack)
		return
	}
	if b.fn.void {
		b.fn.call(v, stack)
		return
	}
	stack[0] = uint64(b.answer(v, stack))
	step.answered(stack)
}

// answer carries out the call, or has the caller's hook answer instead.
func (b *binding) answer(v *vm, args []uint64) uint32 {
	if f := v.host.callHook.Load(); f != nil {
		if st, instead := (*f)(v.worker, b.label); instead {
			return uint32(st)
		}
	}
	return b.fn.call(v, args)
}

// runUnimplemented answers for a function that no gateway has, under a profile that links anything.
func (b *binding) runUnimplemented(ctx context.Context, _ api.Module, stack []uint64) {
	v := ctx.(*vmContext).vm
	v.hostCalls[b.index]++
	v.unimplemented[b.index]++
	if !b.legal[v.phase] {
		panic(fmt.Errorf("%s is not allowed during %s", b.label, v.phase))
	}
	step := b.giveWay(v, stack)
	if f := v.host.faults.Load(); f != nil && b.fault(v, f, stack) {
		step.answered(stack)
		return
	}
	if len(stack) > 0 && !b.fn.void {
		stack[0] = uint64(StatusUnimplemented)
		step.answered(stack)
	}
}
