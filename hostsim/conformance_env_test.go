package hostsim

import (
	"strings"
	"testing"
	"time"
)

// envCases has, for each function of the env module, operations of the probe that call it, in every way in which it can
// answer, and what they show. They run one after the other in one callback, request_headers of stream 2 with end of
// stream. Statuses by number: 0 OK, 1 NOT_FOUND, 2 BAD_ARGUMENT, 4 PARSE_FAILURE, 7 EMPTY, 8 CAS_MISMATCH, 12
// UNIMPLEMENTED; bad addresses are TestBadAddresses'.
var envCases = []struct{ name, ops string }{
	{"proxy_log", "log 2 hi = 0|log 6 hi = 2"},
	{"proxy_get_log_level", "loglevel = 0 0"},
	{"proxy_get_status", "status = 0 0"},
	{"proxy_get_current_time_nanoseconds", "hostnow = 0 2026-01-01T00:00:00Z"},
	{"proxy_set_tick_period_milliseconds", "tickevery 1000 = 0"},
	{"proxy_set_effective_context", "effective 1 = 0|effective 9 = 2|effective 2 = 0"},
	{"proxy_done", "finish = 1"},
	{"proxy_get_property", "prop request$method = 0 GET|prop nothing = 1|prop plugin_root_id = 0 root"},
	{"proxy_set_property", "setprop mine x = 0|prop mine = 0 x"},
	{"proxy_get_header_map_value", "get 0 :path = 0 /a?b=c|get 0 absent = 1|get 1 a = 2|get 2 a = 2|get 4 a = 2|get 6 a = 2|get 8 a = 2"},
	{"proxy_add_header_map_value", "add 0 x-a 1 = 0|add 2 x-a 1 = 2|add 6 x-a 1 = 2|add 8 x-a 1 = 2"},
	{"proxy_replace_header_map_value", "replace 0 x-a 2 = 0|get 0 x-a = 0 2|replace 3 x-a 2 = 2|replace 9 x-a 2 = 2"},
	{"proxy_remove_header_map_value", "remove 0 x-a = 0|remove 0 x-a = 0|get 0 x-a = 1|remove 2 x-a = 2|remove 8 x-a = 2"},
	{"proxy_get_header_map_size", "mapsize 0 = 0 42|mapsize 2 = 2|mapsize 4 = 2|mapsize 8 = 2"},
	{"proxy_get_header_map_pairs", "pairs 0 = 0 :method=GET, :path=/a?b=c, :authority=example.com|pairs 1 = 0|pairs 5 = 0|pairs 8 = 2"},
	{"proxy_set_header_map_pairs", "setpairs 0 :method=GET :path=/ :authority=b = 0|get 0 :path = 0 /|setpairs 2 a=b = 2|setpairs 8 a=b = 2"},
	{"proxy_get_buffer_bytes", "buf 6 0 2 = 0 vm|buf 6 1 9 = 0 m|buf 6 9 1 = 0|buf 7 0 1 = 1|buf 0 0 9 = 0|buf 1 0 9 = 0|" +
		"buf 2 0 9 = 0|buf 3 0 9 = 0|buf 4 0 9 = 1|buf 5 0 9 = 0|buf 8 0 9 = 0|buf 9 0 9 = 2"},
	{"proxy_get_buffer_status", "bufstat 6 = 0 2|bufstat 4 = 1|bufstat 7 = 1|bufstat 5 = 0 0|bufstat 9 = 2"},
	{"proxy_set_buffer_bytes", "bufset 0 0 0 x = 2|bufset 6 0 0 x = 2|bufset 7 0 0 x = 1|bufset 4 0 0 x = 1|bufset 8 0 0 x = 2|bufset 9 0 0 x = 2"},
	{"proxy_continue_stream", "continue 1 = 0|continue 2 = 0|continue 3 = 12|continue 4 = 2"},
	{"proxy_close_stream", "close 2 = 0|close 3 = 0|close 4 = 2"},
	{"proxy_get_shared_data", "sdget key = 1"},
	{"proxy_set_shared_data", "sdset key value 0 = 0|sdget key = 0 value|sdset key other last = 0|sdset key late last = 8"},
	{"proxy_register_shared_queue", "qregister q = 0 1"},
	{"proxy_resolve_shared_queue", "qresolve ~ q = 0 1|qresolve id q = 0 1|qresolve other q = 1"},
	{"proxy_enqueue_shared_queue", "enqueue 1 x = 0|enqueue 2 x = 1"},
	{"proxy_dequeue_shared_queue", "dequeue 1 = 0 x|dequeue 1 = 7|dequeue 2 = 1"},
	{"proxy_define_metric", "mdef 0 c = 0|mdef 1 g = 0|mdef 2 h = 0|mdef 3 x = 2"},
	{"proxy_increment_metric", "minc c 2 = 0|minc c 0 = 2|minc c -1 = 2|minc g -1 = 0|minc h 1 = 2|minc unknown 1 = 1"},
	{"proxy_record_metric", "mrec c 3 = 0|mrec g 7 = 0|mrec h 7 = 0|mrec unknown 1 = 1"},
	{"proxy_get_metric", "mget c = 0 5|mget g = 0 7|mget h = 2|mget unknown = 1"},
	{"proxy_http_call", "httpcall up 9 ~ :method=GET :path=/ :authority=a = 0 4|httpcall no 9 ~ :method=GET :path=/ :authority=a = 2|" +
		"httpcall up 9 ~ :path=/ :authority=a = 2|httpcall up -1 ~ :method=GET :path=/ :authority=a = 2"},
	{"proxy_grpc_call", "grpccall up s m x 0 = 0 5|grpccall no s m x 0 = 4|grpccall ~ s m x 0 = 2"},
	{"proxy_grpc_stream", "grpcstream up s m = 0 6|grpcstream no s m = 4|grpcstream ~ s m = 2"},
	{"proxy_grpc_send", "grpcsend 6 x 0 = 0|grpcsend 5 x 0 = 2|grpcsend 10 x 0 = 1"},
	{"proxy_grpc_cancel", "grpccancel 5 = 0|grpccancel 5 = 1|grpccancel 4 = 2"},
	{"proxy_grpc_close", "grpcclose 6 = 0|grpcclose 5 = 1|grpcclose 4 = 2"},
	{"proxy_call_foreign_function", "foreign echo x = 0 x|foreign fail x = 3|foreign nothing x = 1"},
	{"proxy_send_local_response", "reply 200 x = 0"},
}

// elsewhere says where the functions are exercised that the probe, a module of ABI 0.2.1 in Go, cannot import.
var elsewhere = map[string]string{
	"proxy_get_configuration": "abi010", "proxy_continue_request": "abi010", "proxy_continue_response": "abi010",
	"proxy_clear_route_cache": "abi010", "pthread_equal": "caller", "emscripten_notify_memory_growth": "caller",
}

// Every function of the table that gateways offer is called, and answers as its cases say. A function without a case fails.
func TestEveryEnvFunction(t *testing.T) {
	var script, want []string
	for _, c := range envCases {
		for line := range strings.SplitSeq(c.ops, "|") {
			op, _, _ := strings.Cut(line, " = ")
			script, want = append(script, "request_headers "+op), append(want, line)
		}
	}
	called := map[string]uint64{}
	count := func(h *Host) {
		for label, n := range h.Counters().HostCalls {
			called[strings.TrimPrefix(label, "env.")] += n
		}
	}
	p := newProbe(t, strings.Join(script, "\n"), func(c *Config) {
		c.VMID, c.RootID, c.VMConfig = "id", "root", []byte("vm")
		c.HTTPCall = func(call *HTTPCall) bool { return call.Cluster == "up" }
		c.GRPCCall = func(call *GRPCCall) bool { return call.Cluster == "up" }
		c.ForeignFunctions = map[string]ForeignFunction{
			"echo": func(_ int, a []byte) ([]byte, Status) { return a, StatusOK },
			"fail": func(int, []byte) ([]byte, Status) { return nil, StatusSerializationFailure },
		}
	})
	p.pass()
	var got []string
	for line := range strings.SplitSeq(p.heard(), "\n") {
		if !strings.HasPrefix(line, "> ") && !strings.HasPrefix(line, "hostsim: ") && line != "hi" {
			got = append(got, line)
		}
	}
	diff(t, strings.Join(got, "\n"), strings.Join(want, "\n"))
	count(p.Host)

	old := guestProbe(t, "abi010")
	old.pass()
	s := old.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	old.Advance(100 * time.Millisecond)
	_, err = s.ResponseHeaders(reply, true)
	ok(t, err)
	old.Advance(100 * time.Millisecond)
	count(old.Host)

	c := newCaller(t, "0.2.1", Envoy140())
	for want, b := range []uint64{8, 7} {
		if r, err := c.call(phaseRun, "env.pthread_equal", 7, b); err != nil || r != uint32(want) {
			t.Errorf("pthread_equal(7, %d) = %d, %v", b, r, err)
		}
	}
	_, err = c.call(phaseRun, "env.emscripten_notify_memory_growth", 0)
	ok(t, err)
	count(c.h)

	cases := map[string]bool{}
	for _, c := range envCases {
		cases[c.name] = true
	}
	for _, f := range envFuncs {
		if !cases[f.name] && elsewhere[f.name] == "" {
			t.Errorf("%s has no case", f.name)
		}
		if called[f.name] == 0 {
			t.Errorf("%s was not called", f.name)
		}
		if f.call == nil {
			t.Errorf("%s is not there", f.name)
		}
	}
}

// badAddresses has for each function arguments of which one points out of memory: INVALID_MEMORY_ACCESS, before anything
// happens. The word "far" stands for such an address; numbers are themselves.
var badAddresses = map[string][]string{
	"proxy_log":                          {"2 far 1"},
	"proxy_get_log_level":                {"far"},
	"proxy_get_status":                   {"far 512 516", "512 far 516", "512 516 far"},
	"proxy_get_current_time_nanoseconds": {"far"},
	"proxy_get_property":                 {"far 1 512 516", "256 9 far 516", "256 9 512 far"}, // plugin_id
	"proxy_set_property":                 {"far 1 256 1", "256 1 far 1"},
	"proxy_get_header_map_value":         {"0 far 1 512 516"},
	"proxy_add_header_map_value":         {"0 far 1 256 1", "0 256 1 far 1"},
	"proxy_replace_header_map_value":     {"0 far 1 256 1", "0 256 1 far 1"},
	"proxy_remove_header_map_value":      {"0 far 1"},
	"proxy_get_header_map_pairs":         {"0 far 516", "0 512 far"},
	"proxy_set_header_map_pairs":         {"0 far 9"},
	"proxy_get_buffer_bytes":             {"6 0 1 far 516", "6 0 1 512 far", "6 9 1 far 516"},
	"proxy_get_buffer_status":            {"6 far 516", "6 512 far"},
	"proxy_set_buffer_bytes":             {"6 0 0 far 1"},
	"proxy_send_local_response":          {"200 far 1 0 0 0 0 0", "200 0 0 far 1 0 0 0", "200 0 0 0 0 far 4 0"},
	"proxy_get_shared_data":              {"far 1 512 516 520", "300 3 far 516 520", "300 3 512 far 520", "300 3 512 516 far"},
	"proxy_set_shared_data":              {"far 1 256 1 0", "256 1 far 1 0"},
	"proxy_register_shared_queue":        {"far 1 512", "300 1 far"},
	"proxy_resolve_shared_queue":         {"far 1 300 1 512", "0 0 far 1 512", "0 0 300 1 far"},
	"proxy_dequeue_shared_queue":         {"1 far 516", "1 512 far"},
	"proxy_enqueue_shared_queue":         {"1 far 1"},
	"proxy_define_metric":                {"0 far 1 512", "0 300 1 far"},
	"proxy_get_metric":                   {"4 far"},
	"proxy_http_call":                    {"far 1 0 0 0 0 0 0 0 512", "0 0 far 4 0 0 0 0 0 512", "0 0 0 0 far 1 0 0 0 512", "0 0 0 0 0 0 far 4 0 512", "0 0 0 0 0 0 0 0 0 far"},
	"proxy_grpc_call":                    {"far 1 0 0 0 0 0 0 0 0 0 512", "0 0 far 1 0 0 0 0 0 0 0 512", "0 0 0 0 far 1 0 0 0 0 0 512", "0 0 0 0 0 0 far 4 0 0 0 512", "0 0 0 0 0 0 0 0 far 1 0 512", "300 1 0 0 0 0 0 0 0 0 0 far"},
	"proxy_grpc_stream":                  {"far 1 0 0 0 0 0 0 512", "0 0 far 1 0 0 0 0 512", "0 0 0 0 far 1 0 0 512", "0 0 0 0 0 0 far 4 512", "300 1 0 0 0 0 0 0 far"},
	"proxy_grpc_send":                    {"6 far 1 0"},
	"proxy_call_foreign_function":        {"far 1 0 0 512 516", "300 1 far 1 512 516", "300 1 300 1 far 516", "300 1 300 1 512 far"},
	"proxy_get_configuration":            {"far 516", "512 far"},
}

// noAddress lists the functions that take none.
const noAddress = `proxy_set_tick_period_milliseconds proxy_set_effective_context proxy_done proxy_continue_stream
	proxy_close_stream proxy_increment_metric proxy_record_metric proxy_grpc_cancel proxy_grpc_close proxy_continue_request
	proxy_continue_response proxy_clear_route_cache pthread_equal emscripten_notify_memory_growth`

func TestBadAddresses(t *testing.T) {
	for _, f := range envFuncs {
		abi := "0.2.1"
		if !f.in(abi) {
			abi = "0.1.0"
		}
		if len(badAddresses[f.name]) == 0 && f.name != "proxy_get_header_map_size" && !containsWord(noAddress, f.name) {
			t.Errorf("%s has no case", f.name)
		}
		for _, line := range badAddresses[f.name] {
			c := newAddressCaller(t, abi)
			if st, err := c.call(phaseRun, "env."+f.name, addresses(line)...); err != nil || Status(st) != StatusInvalidMemoryAccess {
				t.Errorf("%s %s: %v, %v", f.name, line, Status(st), err)
			}
		}
	}
	c := newAddressCaller(t, "0.2.1")
	// An unknown map or buffer is refused before its addresses are looked at.
	for _, name := range []string{"get_header_map_value", "add_header_map_value", "replace_header_map_value", "remove_header_map_value",
		"get_header_map_pairs", "set_header_map_pairs", "get_header_map_size", "get_buffer_bytes", "get_buffer_status", "set_buffer_bytes"} {
		if st, _ := c.call(phaseRun, "env.proxy_"+name, 9, far, far, far, far); Status(st) != StatusBadArgument {
			t.Errorf("proxy_%s: %v", name, Status(st))
		}
	}
	if st, _ := c.call(phaseRun, "env.proxy_get_header_map_size", 0, far); Status(st) != StatusInvalidMemoryAccess {
		t.Errorf("proxy_get_header_map_size: %v", Status(st))
	}
}
