package hostsim

import (
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

// hostFunc is one function that a gateway offers.
type hostFunc struct {
	name string
	// params names the parameters, in order, each with the suffix of its paramKind: some kinds take two, address and size.
	// All are of 32 bits but those of one with 64 before the suffix. The result is an i32 unless void.
	params string
	void   bool
	// abis are the ABI versions that have it, "" for all.
	abis string
	// call runs it. Nil means that no gateway has it: under a profile that links anything it answers UNIMPLEMENTED.
	call func(v *vm, args []uint64) uint32
}

// signature returns the function's wazero types.
func (f *hostFunc) signature() (params, results []api.ValueType) {
	for _, p := range parseParams(f.params) {
		t := api.ValueTypeI32
		if p.wide {
			t = api.ValueTypeI64
		}
		params = append(params, slices.Repeat([]api.ValueType{t}, p.width())...)
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
// types: proxy-wasm specification 0.2.1, names of parameters shortened, and proxy-wasm-cpp-host, include/proxy-wasm/exports.h.
var envFuncs = []hostFunc{
	{name: "proxy_log", params: "level message*", call: status(callLog)},
	{name: "proxy_get_log_level", params: "level=", abis: abi021, call: status(callGetLogLevel)},
	{name: "proxy_get_status", params: "code= message>", call: status(callGetStatus)},
	{name: "proxy_get_current_time_nanoseconds", params: "time:", call: status(callGetTime)},
	{name: "proxy_set_tick_period_milliseconds", params: "period", call: status(callSetTickPeriod)},
	{name: "proxy_set_effective_context", params: "context_id", call: status(callSetEffectiveContext)},
	{name: "proxy_done", call: status(callDone)},

	{name: "proxy_get_property", params: "path* value>", call: status(callGetProperty)},
	{name: "proxy_set_property", params: "path* value*", call: status(callSetProperty)},

	{name: "proxy_get_header_map_value", params: "map key* value>", call: status(callGetHeader)},
	{name: "proxy_add_header_map_value", params: "map key* value*", call: status(callAddHeader)},
	{name: "proxy_replace_header_map_value", params: "map key* value*", call: status(callReplaceHeader)},
	{name: "proxy_remove_header_map_value", params: "map key*", call: status(callRemoveHeader)},
	{name: "proxy_get_header_map_pairs", params: "map pairs}", call: status(callGetHeaderPairs)},
	{name: "proxy_set_header_map_pairs", params: "map pairs#", call: status(callSetHeaderPairs)},
	{name: "proxy_get_header_map_size", params: "map size=", call: status(callGetHeaderSize)},

	{name: "proxy_get_buffer_bytes", params: "buffer start length data>", call: status(callGetBuffer)},
	{name: "proxy_get_buffer_status", params: "buffer length= flags=", call: status(callGetBufferStatus)},
	{name: "proxy_set_buffer_bytes", params: "buffer start length data*", call: status(callSetBuffer)},

	{name: "proxy_send_local_response", params: "code details* body* headers# grpc_status-", call: status(callSendLocalResponse)},
	{name: "proxy_continue_stream", params: "stream", abis: abi02x, call: status(callContinueStream)},
	{name: "proxy_close_stream", params: "stream", abis: abi02x, call: status(callCloseStream)},

	{name: "proxy_get_shared_data", params: "key* value> cas=", call: status(callGetSharedData)},
	{name: "proxy_set_shared_data", params: "key* value* cas", call: status(callSetSharedData)},
	{name: "proxy_register_shared_queue", params: "name* queue=", call: status(callRegisterQueue)},
	{name: "proxy_resolve_shared_queue", params: "vm_id* name* queue=", call: status(callResolveQueue)},
	{name: "proxy_dequeue_shared_queue", params: "queue value>", call: status(callDequeue)},
	{name: "proxy_enqueue_shared_queue", params: "queue value*", call: status(callEnqueue)},

	{name: "proxy_define_metric", params: "type name* metric=", call: status(callDefineMetric)},
	{name: "proxy_increment_metric", params: "metric offset64-", call: status(callIncrementMetric)},
	{name: "proxy_record_metric", params: "metric value64", call: status(callRecordMetric)},
	{name: "proxy_get_metric", params: "metric value:", call: status(callGetMetric)},

	{name: "proxy_http_call", params: "cluster* headers# body* trailers# timeout call=", call: status(callHTTPCall)},
	{name: "proxy_grpc_call", params: "service* name* method* metadata# message* timeout call=", call: status(callGRPCCall)},
	{name: "proxy_grpc_stream", params: "service* name* method* metadata# stream=", call: status(callGRPCStream)},
	{name: "proxy_grpc_send", params: "stream message* end_of_stream", call: status(callGRPCSend)},
	{name: "proxy_grpc_cancel", params: "stream", call: status(callGRPCCancel)},
	{name: "proxy_grpc_close", params: "stream", call: status(callGRPCClose)},
	{name: "proxy_call_foreign_function", params: "function* arguments* result?", call: status(callForeignFunction)},

	{name: "proxy_get_configuration", params: "configuration>", abis: abi010, call: status(callGetConfiguration)},
	{name: "proxy_continue_request", abis: abi010, call: status(callContinueRequest)},
	{name: "proxy_continue_response", abis: abi010, call: status(callContinueResponse)},
	{name: "proxy_clear_route_cache", abis: abi010, call: status(callClearRouteCache)},

	{name: "pthread_equal", params: "a! b!", call: callPthreadEqual},
	{name: "emscripten_notify_memory_growth", params: "memory", void: true, call: callNotifyMemoryGrowth},
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

// unknownFunc stands for a function that no table has, under a profile that links anything.
func unknownFunc(im *Import) *hostFunc {
	fn := &hostFunc{name: im.Name, void: len(im.results) == 0}
	if im.Module == moduleWASI || im.Module == moduleWASIUnstable {
		fn.call = wasiErrno(errnoNosys)
	}
	return fn
}
