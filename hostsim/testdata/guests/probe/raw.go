//go:build wasip1

package main

import (
	"maps"
	"strings"
	"unsafe"
)

// Host functions as they are on the wire, for arguments that no SDK would pass.

//go:wasmimport env proxy_log
func rawLog(a, b, c uint32) uint32

//go:wasmimport env proxy_get_log_level
func rawGetLogLevel(a uint32) uint32

//go:wasmimport env proxy_get_current_time_nanoseconds
func rawGetCurrentTimeNanoseconds(a uint32) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func rawSetTickPeriodMilliseconds(a uint32) uint32

//go:wasmimport env proxy_set_effective_context
func rawSetEffectiveContext(a uint32) uint32

//go:wasmimport env proxy_get_property
func rawGetProperty(a, b, c, d uint32) uint32

//go:wasmimport env proxy_set_property
func rawSetProperty(a, b, c, d uint32) uint32

//go:wasmimport env proxy_get_header_map_value
func rawGetHeaderMapValue(a, b, c, d, e uint32) uint32

//go:wasmimport env proxy_add_header_map_value
func rawAddHeaderMapValue(a, b, c, d, e uint32) uint32

//go:wasmimport env proxy_replace_header_map_value
func rawReplaceHeaderMapValue(a, b, c, d, e uint32) uint32

//go:wasmimport env proxy_remove_header_map_value
func rawRemoveHeaderMapValue(a, b, c uint32) uint32

//go:wasmimport env proxy_get_header_map_pairs
func rawGetHeaderMapPairs(a, b, c uint32) uint32

//go:wasmimport env proxy_set_header_map_pairs
func rawSetHeaderMapPairs(a, b, c uint32) uint32

//go:wasmimport env proxy_get_header_map_size
func rawGetHeaderMapSize(a, b uint32) uint32

//go:wasmimport env proxy_get_buffer_bytes
func rawGetBufferBytes(a, b, c, d, e uint32) uint32

//go:wasmimport env proxy_get_buffer_status
func rawGetBufferStatus(a, b, c uint32) uint32

//go:wasmimport env proxy_set_buffer_bytes
func rawSetBufferBytes(a, b, c, d, e uint32) uint32

//go:wasmimport env proxy_send_local_response
func rawSendLocalResponse(a, b, c, d, e, f, g, h uint32) uint32

//go:wasmimport env proxy_continue_stream
func rawContinueStream(a uint32) uint32

//go:wasmimport env proxy_close_stream
func rawCloseStream(a uint32) uint32

//go:wasmimport env proxy_get_shared_data
func rawGetSharedData(a, b, c, d, e uint32) uint32

//go:wasmimport env proxy_set_shared_data
func rawSetSharedData(a, b, c, d, e uint32) uint32

//go:wasmimport env proxy_register_shared_queue
func rawRegisterSharedQueue(a, b, c uint32) uint32

//go:wasmimport env proxy_resolve_shared_queue
func rawResolveSharedQueue(a, b, c, d, e uint32) uint32

//go:wasmimport env proxy_dequeue_shared_queue
func rawDequeueSharedQueue(a, b, c uint32) uint32

//go:wasmimport env proxy_enqueue_shared_queue
func rawEnqueueSharedQueue(a, b, c uint32) uint32

//go:wasmimport env proxy_define_metric
func rawDefineMetric(a, b, c, d uint32) uint32

//go:wasmimport env proxy_get_metric
func rawGetMetric(a, b uint32) uint32

//go:wasmimport env proxy_http_call
func rawHttpCall(a, b, c, d, e, f, g, h, i, j uint32) uint32

//go:wasmimport env proxy_grpc_call
func rawGrpcCall(a, b, c, d, e, f, g, h, i, j, k, l uint32) uint32

//go:wasmimport env proxy_grpc_stream
func rawGrpcStream(a, b, c, d, e, f, g, h, i uint32) uint32

//go:wasmimport env proxy_grpc_send
func rawGrpcSend(a, b, c, d uint32) uint32

//go:wasmimport env proxy_grpc_cancel
func rawGrpcCancel(a uint32) uint32

//go:wasmimport env proxy_grpc_close
func rawGrpcClose(a uint32) uint32

//go:wasmimport env proxy_call_foreign_function
func rawCallForeignFunction(a, b, c, d, e, f uint32) uint32

type rawFunc struct {
	params int
	call   func(a []uint32) uint32
}

var rawFuncs = map[string]rawFunc{
	"log":                          {3, func(a []uint32) uint32 { return rawLog(a[0], a[1], a[2]) }},
	"get_log_level":                {1, func(a []uint32) uint32 { return rawGetLogLevel(a[0]) }},
	"get_current_time_nanoseconds": {1, func(a []uint32) uint32 { return rawGetCurrentTimeNanoseconds(a[0]) }},
	"set_tick_period_milliseconds": {1, func(a []uint32) uint32 { return rawSetTickPeriodMilliseconds(a[0]) }},
	"set_effective_context":        {1, func(a []uint32) uint32 { return rawSetEffectiveContext(a[0]) }},
	"get_property":                 {4, func(a []uint32) uint32 { return rawGetProperty(a[0], a[1], a[2], a[3]) }},
	"set_property":                 {4, func(a []uint32) uint32 { return rawSetProperty(a[0], a[1], a[2], a[3]) }},
	"get_header_map_value":         {5, func(a []uint32) uint32 { return rawGetHeaderMapValue(a[0], a[1], a[2], a[3], a[4]) }},
	"add_header_map_value":         {5, func(a []uint32) uint32 { return rawAddHeaderMapValue(a[0], a[1], a[2], a[3], a[4]) }},
	"replace_header_map_value":     {5, func(a []uint32) uint32 { return rawReplaceHeaderMapValue(a[0], a[1], a[2], a[3], a[4]) }},
	"remove_header_map_value":      {3, func(a []uint32) uint32 { return rawRemoveHeaderMapValue(a[0], a[1], a[2]) }},
	"get_header_map_pairs":         {3, func(a []uint32) uint32 { return rawGetHeaderMapPairs(a[0], a[1], a[2]) }},
	"set_header_map_pairs":         {3, func(a []uint32) uint32 { return rawSetHeaderMapPairs(a[0], a[1], a[2]) }},
	"get_header_map_size":          {2, func(a []uint32) uint32 { return rawGetHeaderMapSize(a[0], a[1]) }},
	"get_buffer_bytes":             {5, func(a []uint32) uint32 { return rawGetBufferBytes(a[0], a[1], a[2], a[3], a[4]) }},
	"get_buffer_status":            {3, func(a []uint32) uint32 { return rawGetBufferStatus(a[0], a[1], a[2]) }},
	"set_buffer_bytes":             {5, func(a []uint32) uint32 { return rawSetBufferBytes(a[0], a[1], a[2], a[3], a[4]) }},
	"send_local_response":          {8, func(a []uint32) uint32 { return rawSendLocalResponse(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]) }},
	"continue_stream":              {1, func(a []uint32) uint32 { return rawContinueStream(a[0]) }},
	"close_stream":                 {1, func(a []uint32) uint32 { return rawCloseStream(a[0]) }},
	"get_shared_data":              {5, func(a []uint32) uint32 { return rawGetSharedData(a[0], a[1], a[2], a[3], a[4]) }},
	"set_shared_data":              {5, func(a []uint32) uint32 { return rawSetSharedData(a[0], a[1], a[2], a[3], a[4]) }},
	"register_shared_queue":        {3, func(a []uint32) uint32 { return rawRegisterSharedQueue(a[0], a[1], a[2]) }},
	"resolve_shared_queue":         {5, func(a []uint32) uint32 { return rawResolveSharedQueue(a[0], a[1], a[2], a[3], a[4]) }},
	"dequeue_shared_queue":         {3, func(a []uint32) uint32 { return rawDequeueSharedQueue(a[0], a[1], a[2]) }},
	"enqueue_shared_queue":         {3, func(a []uint32) uint32 { return rawEnqueueSharedQueue(a[0], a[1], a[2]) }},
	"define_metric":                {4, func(a []uint32) uint32 { return rawDefineMetric(a[0], a[1], a[2], a[3]) }},
	"get_metric":                   {2, func(a []uint32) uint32 { return rawGetMetric(a[0], a[1]) }},
	"http_call": {10, func(a []uint32) uint32 {
		return rawHttpCall(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9])
	}},
	"grpc_call": {12, func(a []uint32) uint32 {
		return rawGrpcCall(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11])
	}},
	"grpc_stream":           {9, func(a []uint32) uint32 { return rawGrpcStream(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]) }},
	"grpc_send":             {4, func(a []uint32) uint32 { return rawGrpcSend(a[0], a[1], a[2], a[3]) }},
	"grpc_cancel":           {1, func(a []uint32) uint32 { return rawGrpcCancel(a[0]) }},
	"grpc_close":            {1, func(a []uint32) uint32 { return rawGrpcClose(a[0]) }},
	"call_foreign_function": {6, func(a []uint32) uint32 { return rawCallForeignFunction(a[0], a[1], a[2], a[3], a[4], a[5]) }},
}

// raw calls a host function by name, without its prefix, with the arguments given one by one:
//
//	7, 0xfffffff0   the number
//	s:TEXT          address and size of the text
//	m:N=V,N=V       address and size of the serialised map
//	o               address for a number, which is shown
//	O               addresses for an address and a size, of text that is shown
func raw(a []string) string {
	f, known := rawFuncs[a[0]]
	if !known {
		panic("probe: no host function " + a[0])
	}
	passed = passed[:0]
	var args []uint32
	out := new([16]uint32)
	var show []func() string
	for i, word := range a[1:] {
		switch {
		case strings.HasPrefix(word, "s:"), strings.HasPrefix(word, "m:"):
			s := word[2:]
			if word[0] == 'm' {
				s = encode(strings.Split(s, ","))
			}
			passed = append(passed, s)
			args = append(args, address(str(s)), size(s))
		case word == "o":
			args = append(args, address(ptr(&out[i])))
			show = append(show, func() string { return num(out[i]) })
		case word == "O":
			args = append(args, address(ptr(&out[i])), address(ptr(&out[i+1])))
			show = append(show, func() string { return view(out[i], out[i+1], 0) })
		default:
			args = append(args, number(word))
		}
	}
	if len(args) != f.params {
		panic("probe: wrong number of arguments for " + a[0])
	}
	status := f.call(args)
	result := num(status)
	for _, s := range show {
		if status == 0 {
			result += " " + s()
		}
	}
	return result
}

// passed keeps texts from the collector while only their addresses are known.
var passed []string

func address(p ptr) uint32 { return uint32(uintptr(p)) }

// become makes another context the effective one: root, the plugin context of the callback that runs, or the stream that
// was created last under it, or a number.
func become(a []string) string {
	id := hereRoot
	switch a[0] {
	case "root":
	case "stream":
		id = 0
		for stream, root := range rootOf {
			if root == hereRoot {
				id = max(id, stream)
			}
		}
	default:
		id = number(a[0])
	}
	return num(hEffective(id))
}

func init() {
	maps.Copy(operations, map[string]func(a []string) string{
		"raw":    raw,
		"become": become,
		"replyas": func(a []string) string { // status, details, body, gRPC status, headers
			h := encode(a[4:])
			return num(hSendLocal(number(a[0]), str(a[1]), size(a[1]), str(a[2]), size(a[2]), str(h), size(h), number(a[3])))
		},
		"call": func(a []string) string { // cluster, timeout, body, headers, word trailers, trailers
			var id uint32
			headers, trailers := a[3:], []string(nil)
			for i, w := range headers {
				if w == "trailers" {
					headers, trailers = headers[:i], headers[i+1:]
					break
				}
			}
			h, t := encode(headers), encode(trailers)
			st := hHTTPCall(str(a[0]), size(a[0]), str(h), size(h), str(a[2]), size(a[2]), str(t), size(t), number(a[1]), ptr(&id))
			return result(st, num(id))
		},
		"long": func(a []string) string { // kind, name, number of bytes
			v := strings.Repeat("x", int(number(a[2])))
			return num(hAddHeader(number(a[0]), str(a[1]), size(a[1]), str(v), size(v)))
		},
		"trap": func([]string) string { *(*byte)(unsafe.Pointer(uintptr(0xfffffff0))) = 1; return "0" },
	})
}
