package hostsim

import (
	"slices"
	"strings"
	"testing"
)

// Of each function the table has one text; these types are as in the sources that it names.
func TestHostFunctionSignatures(t *testing.T) {
	for name, want := range map[string]string{
		"proxy_done": ":i", "proxy_get_property": "iiii:i", "proxy_http_call": "iiiiiiiiii:i", "proxy_grpc_call": "iiiiiiiiiiii:i",
		"proxy_grpc_stream": "iiiiiiiii:i", "proxy_send_local_response": "iiiiiiii:i", "proxy_set_shared_data": "iiiii:i",
		"proxy_increment_metric": "iI:i", "proxy_record_metric": "iI:i", "proxy_get_metric": "ii:i", "proxy_call_foreign_function": "iiiiii:i",
		"emscripten_notify_memory_growth": "i:", "proc_exit": "i:", "fd_write": "iiii:i", "fd_seek": "iIii:i", "clock_time_get": "iIi:i",
		"path_open": "iiiiiIIii:i", "fd_fdstat_set_rights": "iII:i", "fd_advise": "iIIi:i", "fd_allocate": "iII:i",
		"fd_filestat_set_size": "iI:i", "fd_filestat_set_times": "iIIi:i", "fd_pread": "iiiIi:i", "fd_pwrite": "iiiIi:i",
		"fd_readdir": "iiiIi:i", "path_filestat_set_times": "iiiiIIi:i", "path_link": "iiiiii:i", "path_symlink": "iiii:i",
		"sock_recv": "iiiiii:i", "sock_send": "iiiii:i",
	} {
		fn := findHostFunc(moduleEnv, name)
		if fn == nil {
			fn = findHostFunc(moduleWASI, name)
		}
		params, results, _ := strings.Cut(want, ":")
		if p, r := fn.signature(); !slices.Equal(p, typesOf(params)) || !slices.Equal(r, typesOf(results)) {
			t.Errorf("%s is %v, want %s", name, signatureOf(fn), want)
		}
	}
}

// Names are keys of a recording's objects.
func TestParametersHaveDistinctNames(t *testing.T) {
	for _, f := range slices.Concat(envFuncs, wasiFuncs) {
		seen := map[string]bool{"": true}
		for _, p := range parseParams(f.params) {
			if seen[p.name] {
				t.Errorf("%s has a parameter %q twice or without a name", f.name, p.name)
			}
			seen[p.name] = true
		}
	}
}
