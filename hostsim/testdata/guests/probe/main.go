//go:build wasip1

// Probe does in each callback what its plugin configuration says, and logs what came of it. The configuration has one line
// per operation:
//
//	request_headers get 0 x-session-id
//	request_headers return 1
//	tick sdset key value 0
//
// Each callback is logged at debug level as "> name context arguments"; each operation at info level as the operation,
// "=", the status and, where it is 0, what was read. An operation behind the word "when" and a number runs only in the
// callback's call of that number, counted from 1 over the life of the instance; behind "nth" and a
// number, only in that call under its plugin configuration.
package main

import (
	"strconv"
	"strings"
)

func main() {}

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

// kept holds the last allocations for the host, which alone knows of them.
var (
	kept     [64][]byte
	keptNext int
)

//go:wasmexport proxy_on_memory_allocate
func memoryAllocate(n uint32) ptr {
	b := make([]byte, max(n, 1))
	kept[keptNext%len(kept)] = b
	keptNext++
	return ptr(&b[0])
}

type script struct {
	lines map[string][]string
	calls map[string]int
}

var (
	scripts = map[uint32]*script{} // by plugin context
	rootOf  = map[uint32]uint32{}  // by stream context
	calls   = map[string]int{}

	hereRoot uint32 // plugin context of the callback that runs
)

// run carries out the operations for a callback and returns its answer.
func run(name string, context uint32, answer uint32, args ...uint32) uint32 {
	calls[name]++
	trace := "> " + name + " " + num(context)
	for _, a := range args {
		trace += " " + num(a)
	}
	logAt(1, trace)
	root, ok := rootOf[context]
	if !ok {
		root = context
	}
	s := scripts[root]
	if s == nil {
		return answer
	}
	s.calls[name]++
	hereRoot = root
	for _, line := range s.lines[name] {
		fields := strings.Fields(line)
		if fields[0] == "when" {
			if fields[1] != strconv.Itoa(calls[name]) {
				continue
			}
			fields = fields[2:]
		}
		if fields[0] == "nth" {
			if fields[1] != strconv.Itoa(s.calls[name]) {
				continue
			}
			fields = fields[2:]
		}
		if fields[0] == "return" {
			answer = number(fields[1])
			continue
		}
		logAt(2, strings.Join(fields, " ")+" = "+do(fields[0], fields[1:]))
	}
	return answer
}

func parse(config string) *script {
	s := &script{lines: map[string][]string{}, calls: map[string]int{}}
	for line := range strings.SplitSeq(config, "\n") {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok {
			s.lines[name] = append(s.lines[name], rest)
		}
	}
	return s
}

//go:wasmexport proxy_on_context_create
func contextCreate(id, parent uint32) {
	if parent != 0 {
		rootOf[id] = parent
	}
	run("context_create", id, 0, parent)
}

//go:wasmexport proxy_on_vm_start
func vmStart(id, size uint32) uint32 {
	config, _ := buffer(6, 0, size)
	if config == "refuse" {
		return 0
	}
	return run("vm_start", id, 1, size)
}

//go:wasmexport proxy_on_configure
func configure(id, size uint32) uint32 {
	config, _ := buffer(7, 0, size)
	scripts[id] = parse(config)
	return run("configure", id, 1, size)
}

//go:wasmexport proxy_on_tick
func tick(id uint32) { run("tick", id, 0) }

//go:wasmexport proxy_on_request_headers
func requestHeaders(id, n, eos uint32) uint32 { return run("request_headers", id, 0, n, eos) }

//go:wasmexport proxy_on_request_body
func requestBody(id, n, eos uint32) uint32 { return run("request_body", id, 0, n, eos) }

//go:wasmexport proxy_on_request_trailers
func requestTrailers(id, n uint32) uint32 { return run("request_trailers", id, 0, n) }

//go:wasmexport proxy_on_response_headers
func responseHeaders(id, n, eos uint32) uint32 { return run("response_headers", id, 0, n, eos) }

//go:wasmexport proxy_on_response_body
func responseBody(id, n, eos uint32) uint32 { return run("response_body", id, 0, n, eos) }

//go:wasmexport proxy_on_response_trailers
func responseTrailers(id, n uint32) uint32 { return run("response_trailers", id, 0, n) }

//go:wasmexport proxy_on_http_call_response
func httpCallResponse(id, call, n, body, trailers uint32) {
	run("http_call_response", id, 0, call, n, body, trailers)
}

//go:wasmexport proxy_on_log
func onLog(id uint32) { run("log", id, 0) }

//go:wasmexport proxy_on_done
func onDone(id uint32) uint32 { return run("done", id, 1) }

//go:wasmexport proxy_on_delete
func onDelete(id uint32) {
	run("delete", id, 0)
	delete(rootOf, id)
	delete(scripts, id)
}
