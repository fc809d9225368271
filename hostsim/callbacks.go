package hostsim

import "github.com/tetratelabs/wazero/api"

// export is one function of the module that the host calls. Its call engine is made once: making one per call costs more
// than the call.
type export struct {
	name            string
	fn              api.Function
	stack           []uint64
	params, results int
	calls           uint64
	busy            bool
}

// callbacks are the exports that hostsim calls. Nil means that the module does not have it, and then it is not called.
type callbacks struct {
	initialize, main, start *export

	contextCreate, vmStart, configure, tick         *export
	requestHeaders, requestBody, requestTrailers    *export
	responseHeaders, responseBody, responseTrailers *export
	log, done, remove                               *export
	httpCallResponse                                *export
	requestMetadata, responseMetadata               *export
	queueReady, foreignFunction                     *export
	grpcInitial, grpcReceive, grpcTrailing          *export
	grpcClose                                       *export
	newConnection, downstreamData, upstreamData     *export
	downstreamClose, upstreamClose                  *export
}

// bind looks up the module's exports.
func (v *vm) bind() {
	v.all = nil
	find := func(names ...string) *export {
		for _, name := range names {
			fn := v.mod.ExportedFunction(name)
			if fn == nil {
				continue
			}
			def := fn.Definition()
			e := &export{name: name, fn: fn, params: len(def.ParamTypes()), results: len(def.ResultTypes())}
			e.stack = make([]uint64, max(e.params, e.results))
			v.all = append(v.all, e)
			return e
		}
		return nil
	}
	v.callbacks = callbacks{
		initialize: find("_initialize"), main: find("main", "__main_void"), start: find("_start"),
		contextCreate: find("proxy_on_context_create"), vmStart: find("proxy_on_vm_start"),
		configure: find("proxy_on_configure"), tick: find("proxy_on_tick"),
		requestHeaders: find("proxy_on_request_headers"), requestBody: find("proxy_on_request_body"),
		requestTrailers: find("proxy_on_request_trailers"),
		responseHeaders: find("proxy_on_response_headers"), responseBody: find("proxy_on_response_body"),
		responseTrailers: find("proxy_on_response_trailers"),
		log:              find("proxy_on_log"), done: find("proxy_on_done"), remove: find("proxy_on_delete"),
		httpCallResponse: find("proxy_on_http_call_response"),
		requestMetadata:  find("proxy_on_request_metadata"), responseMetadata: find("proxy_on_response_metadata"),
		queueReady:  find("proxy_on_queue_ready"),
		grpcInitial: find("proxy_on_grpc_receive_initial_metadata"), grpcReceive: find("proxy_on_grpc_receive"),
		grpcTrailing: find("proxy_on_grpc_receive_trailing_metadata"), grpcClose: find("proxy_on_grpc_close"),
		newConnection:  find("proxy_on_new_connection"),
		downstreamData: find("proxy_on_downstream_data"), upstreamData: find("proxy_on_upstream_data"),
		downstreamClose: find("proxy_on_downstream_connection_close"), upstreamClose: find("proxy_on_upstream_connection_close"),
	}
	if v.program.abi != abi010 { // a module of the first ABI is not told. Source: proxy-wasm-cpp-host, WasmBase::getFunctions
		v.foreignFunction = find("proxy_on_foreign_function")
	}
	v.allocator = find("malloc", "proxy_on_memory_allocate")
}

// callbackNames lists every export that a host of ABI 0.2.1 and before would call, for reports.
var callbackNames = []string{
	"_initialize", "_start", "main", "__main_void", "malloc", "proxy_on_memory_allocate",
	"proxy_on_context_create", "proxy_on_vm_start", "proxy_on_configure", "proxy_on_tick", "proxy_on_queue_ready",
	"proxy_on_new_connection", "proxy_on_downstream_data", "proxy_on_downstream_connection_close",
	"proxy_on_upstream_data", "proxy_on_upstream_connection_close",
	"proxy_on_request_headers", "proxy_on_request_body", "proxy_on_request_trailers", "proxy_on_request_metadata",
	"proxy_on_response_headers", "proxy_on_response_body", "proxy_on_response_trailers", "proxy_on_response_metadata",
	"proxy_on_http_call_response", "proxy_on_grpc_receive_initial_metadata", "proxy_on_grpc_receive_trailing_metadata",
	"proxy_on_grpc_receive", "proxy_on_grpc_close", "proxy_on_foreign_function",
	"proxy_on_log", "proxy_on_done", "proxy_on_delete",
}
