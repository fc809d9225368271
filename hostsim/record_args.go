package hostsim

import (
	"strconv"
	"strings"
)

// paramKind is what a parameter of a host function, or two, mean to a recording.
type paramKind byte

const (
	paramNumber  paramKind = 'u' // a number that the module passes
	paramSigned  paramKind = '-' // the same, signed
	paramBytes   paramKind = '*' // address and size of bytes that the module passes
	paramPairs   paramKind = '#' // the same, a serialised header map
	paramVectors paramKind = '[' // address and number of address-and-size pairs
	paramResult  paramKind = '=' // address of what the host writes: a number of 32 bits, or bytes
	paramWide    paramKind = ':' // address of a number of 64 bits that the host writes
	paramGiven   paramKind = '>' // two addresses, for those of bytes that the host allocates
	paramWanted  paramKind = '?' // the same, and an address of 0 says that the module does not want it
	paramMap     paramKind = '}' // the same, a serialised header map
	paramPointer paramKind = '!' // an address that means nothing outside the module
)

// param is one named argument of a host function.
type param struct {
	name string
	kind paramKind
	at   int // index of its first parameter
	wide bool
}

// callParams names the parameters of host functions, in order, each with a suffix for its kind; without one it is a number.
// Names: proxy-wasm specification 0.2.1 and WASI snapshot preview 1, shortened.
var callParams = map[string]string{
	"proxy_log": "level message*", "proxy_get_log_level": "level=", "proxy_get_status": "code= message>",
	"proxy_get_current_time_nanoseconds": "time:", "proxy_set_tick_period_milliseconds": "period",
	"proxy_set_effective_context": "context_id", "proxy_done": "",
	"proxy_get_property": "path* value>", "proxy_set_property": "path* value*",

	"proxy_get_header_map_value": "map key* value>", "proxy_add_header_map_value": "map key* value*",
	"proxy_replace_header_map_value": "map key* value*", "proxy_remove_header_map_value": "map key*",
	"proxy_get_header_map_pairs": "map pairs}", "proxy_set_header_map_pairs": "map pairs#",
	"proxy_get_header_map_size": "map size=",
	"proxy_get_buffer_bytes":    "buffer start length data>", "proxy_get_buffer_status": "buffer length= flags=",
	"proxy_set_buffer_bytes":    "buffer start length data*",
	"proxy_send_local_response": "code details* body* headers# grpc_status-",
	"proxy_continue_stream":     "stream", "proxy_close_stream": "stream",

	"proxy_get_shared_data": "key* value> cas=", "proxy_set_shared_data": "key* value* cas",
	"proxy_register_shared_queue": "name* queue=", "proxy_resolve_shared_queue": "vm_id* name* queue=",
	"proxy_dequeue_shared_queue": "queue value>", "proxy_enqueue_shared_queue": "queue value*",
	"proxy_define_metric": "type name* metric=", "proxy_increment_metric": "metric offset-",
	"proxy_record_metric": "metric value", "proxy_get_metric": "metric value:",

	"proxy_http_call":   "cluster* headers# body* trailers# timeout call=",
	"proxy_grpc_call":   "service* name* method* metadata# message* timeout call=",
	"proxy_grpc_stream": "service* name* method* metadata# stream=",
	"proxy_grpc_send":   "stream message* end_of_stream", "proxy_grpc_cancel": "stream", "proxy_grpc_close": "stream",
	"proxy_call_foreign_function": "function* arguments* result?",

	"proxy_get_configuration": "configuration>", "proxy_continue_request": "", "proxy_continue_response": "",
	"proxy_clear_route_cache": "", "pthread_equal": "a! b!", "emscripten_notify_memory_growth": "memory",

	"fd_write": "fd data[ written=", "fd_read": "fd vectors! count read=", "fd_seek": "fd offset- whence position:",
	"fd_close": "fd", "fd_fdstat_get": "fd stat=", "fd_fdstat_set_flags": "fd flags",
	"environ_get": "array! buffer!", "environ_sizes_get": "count= size=", "args_get": "array! buffer!",
	"args_sizes_get": "count= size=", "clock_time_get": "clock precision time:", "random_get": "bytes= length",
	"sched_yield": "", "poll_oneoff": "subscriptions! events! count written=", "proc_exit": "code",
	"path_open":      "fd dirflags path* oflags rights inheriting fdflags opened=",
	"fd_prestat_get": "fd prestat=", "fd_prestat_dir_name": "fd path! length",

	"fd_fdstat_set_rights": "fd base inheriting", "clock_res_get": "clock resolution:",
	"fd_advise": "fd offset length advice", "fd_allocate": "fd offset length", "fd_datasync": "fd",
	"fd_filestat_get": "fd stat=", "fd_filestat_set_size": "fd size", "fd_filestat_set_times": "fd accessed modified flags",
	"fd_pread": "fd vectors! count offset read=", "fd_pwrite": "fd data[ offset written=",
	"fd_readdir": "fd buffer! length cookie used=", "fd_renumber": "fd to", "fd_sync": "fd", "fd_tell": "fd position:",
	"path_create_directory": "fd path*", "path_filestat_get": "fd flags path* stat=",
	"path_filestat_set_times": "fd flags path* accessed modified which", "path_link": "fd flags old* new_fd new!",
	"path_readlink": "fd path* buffer! length used=", "path_remove_directory": "fd path*",
	"path_rename": "fd old* new_fd new*", "path_symlink": "old* fd new!", "path_unlink_file": "fd path*",
	"sock_accept": "fd flags opened=", "sock_recv": "fd vectors! count flags received= out_flags=",
	"sock_send": "fd data[ flags sent=", "sock_shutdown": "fd how",
}

// paramsOf reads a function's entry in callParams. A function without one, or with other parameters, has its numbers recorded
// as they are, under a0, a1 and so on.
func paramsOf(name, letters string) []param {
	var out []param
	at := 0
	if text, ok := callParams[name]; ok {
		for field := range strings.FieldsSeq(text) {
			p := param{name: field, kind: paramNumber, at: at}
			if last := len(field) - 1; strings.IndexByte("-*#[=:>?}!", field[last]) >= 0 {
				p.name, p.kind = field[:last], paramKind(field[last])
			}
			out = append(out, p)
			at += p.width()
		}
	}
	if at != len(letters) {
		out = out[:0]
		for i := range len(letters) {
			out = append(out, param{name: "a" + strconv.Itoa(i), kind: paramNumber, at: i})
		}
	}
	for i := range out {
		out[i].wide = letters[out[i].at] == 'I'
	}
	return out
}

// width is the number of wasm parameters.
func (p *param) width() int {
	if strings.IndexByte("*#[>?}", byte(p.kind)) >= 0 {
		return 2
	}
	return 1
}

// written is true for what the host writes.
func (p *param) written() bool { return strings.IndexByte("=:>?}", byte(p.kind)) >= 0 }

// appendArgs writes what the module passes: numbers, and bytes by content. Addresses are left out: they differ between
// builds of one plugin.
func appendArgs(b []byte, v *vm, params []param, a []uint64, r *redaction) []byte {
	b = append(b, '{')
	name := r.headerName(v, params, a)
	for i := range params {
		p := &params[i]
		if p.written() || p.kind == paramPointer {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), p.name...), '"', ':')
		switch p.kind {
		case paramNumber, paramSigned:
			b = p.appendNumber(b, a[p.at])
		case paramVectors:
			data, ok := v.readVectors(a[p.at], a[p.at+1])
			b = appendMemory(b, data, ok, r)
		default:
			data, ok := v.readArg(a[p.at], a[p.at+1])
			switch {
			case ok && p.kind == paramPairs:
				b = appendPairs(b, data, r)
			case p.name == "value":
				if ok {
					b = appendText(b, r.value(name, data))
				} else {
					b = appendMemory(b, nil, false, nil)
				}
			default:
				b = appendMemory(b, data, ok, r)
			}
		}
	}
	return append(b, '}')
}

func (p *param) appendNumber(b []byte, n uint64) []byte {
	switch {
	case p.kind == paramSigned && p.wide:
		return strconv.AppendInt(b, int64(n), 10)
	case p.kind == paramSigned:
		return strconv.AppendInt(b, int64(int32(uint32(n))), 10)
	case p.wide:
		return strconv.AppendUint(b, n, 10)
	}
	return strconv.AppendUint(b, uint64(uint32(n)), 10)
}

// appendMemory writes bytes of the module, or that they lie outside its memory.
func appendMemory(b, data []byte, ok bool, r *redaction) []byte {
	if !ok {
		return append(b, `{"outside_memory":true}`...)
	}
	return appendText(b, r.text(data))
}

// appendPairs writes a serialised header map.
func appendPairs(b, data []byte, r *redaction) []byte {
	if h, ok := splitPairs(data); ok {
		return appendHeaders(b, r.headers(h))
	}
	return appendText(b, r.text(data))
}

// readArg is read for a module that may still be starting.
func (v *vm) readArg(ptr, size uint64) ([]byte, bool) {
	if v.mem == nil {
		return nil, uint32(size) == 0
	}
	return v.read(ptr, size)
}

// maxVectors bounds what one WASI write puts into a recording, in bytes.
const maxVectors = 16 << 20

// readVectors joins what the vectors of a WASI write name.
func (v *vm) readVectors(at, count uint64) ([]byte, bool) {
	if v.mem == nil {
		return nil, false
	}
	var out []byte
	for i := range uint64(uint32(count)) {
		ptr, ok1 := v.mem.ReadUint32Le(uint32(at) + uint32(8*i))
		size, ok2 := v.mem.ReadUint32Le(uint32(at) + uint32(8*i) + 4)
		if !ok1 || !ok2 {
			return nil, false
		}
		part, ok := v.mem.Read(ptr, size)
		if !ok {
			return nil, false
		}
		if out = append(out, part...); len(out) > maxVectors {
			return nil, false // vectors may name the same bytes many times
		}
	}
	return out, true
}
