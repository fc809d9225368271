package hostsim

import "slices"

// Profile describes a gateway as data: what it offers to a module and how it answers. Obtain one from Envoy136, Envoy140,
// Permissive or ProfileByName; change fields to describe another gateway. The zero Name stands for the default profile.
type Profile struct {
	// Name is how commands and reports call it.
	Name string
	// WASI lists the functions that a module may import from wasi_snapshot_preview1 and wasi_unstable.
	WASI []string
	// AnyImport links functions that the gateway does not know: those of WASI answer ENOSYS, all others UNIMPLEMENTED.
	AnyImport bool
	// PollErrno is what poll_oneoff answers. 0 reports success and no event, at once, so that a module that sleeps spins
	// until its clock has moved on.
	PollErrno uint32
	// StartCalls lists the host functions that a module may call from _initialize, main and _start. Any other traps. Nil
	// means no restriction.
	StartCalls []string
	// AllocCalls is the same for malloc and proxy_on_memory_allocate.
	AllocCalls []string
}

// WASI errno values that gateways answer. Source: WASI snapshot preview 1.
const (
	errnoSuccess = 0
	errnoBadf    = 8
	errnoFault   = 21
	errnoInval   = 28
	errnoNoent   = 44
	errnoNosys   = 52
	errnoNotdir  = 20
	errnoNotsup  = 58
)

// wasi136 is what Envoy 1.36.4 links, wasi140 what 1.40.0 adds; both hold for the proxy-wasm-cpp-host of before and after
// its change of April 2026, include/proxy-wasm/exports.h.
var (
	wasi136 = []string{"fd_write", "fd_read", "fd_seek", "fd_close", "fd_fdstat_get", "fd_fdstat_set_flags", "environ_get",
		"environ_sizes_get", "args_get", "args_sizes_get", "clock_time_get", "random_get", "sched_yield", "poll_oneoff",
		"proc_exit", "path_open", "fd_prestat_get", "fd_prestat_dir_name"}
	wasi140 = []string{"fd_fdstat_set_rights", "clock_res_get", "fd_advise", "fd_allocate", "fd_datasync",
		"fd_filestat_get", "fd_filestat_set_size", "fd_filestat_set_times", "fd_pread", "fd_pwrite", "fd_readdir",
		"fd_renumber", "fd_sync", "fd_tell", "path_create_directory", "path_filestat_get", "path_filestat_set_times",
		"path_link", "path_readlink", "path_remove_directory", "path_rename", "path_symlink", "path_unlink_file",
		"sock_accept", "sock_recv", "sock_send", "sock_shutdown"}
)

// start136 is legal while a module starts, on every Envoy; 1.40 adds what Go's runtime may call there and the harmless
// file functions. Source: proxy-wasm-cpp-host, src/wasm.cc, startVm.
var start136 = []string{"emscripten_notify_memory_growth", "proxy_log", "fd_write", "args_sizes_get", "args_get",
	"environ_sizes_get", "environ_get", "fd_prestat_get", "fd_prestat_dir_name", "clock_time_get", "random_get",
	"fd_fdstat_get", "fd_fdstat_set_flags"}

// Envoy136 stands for Envoy 1.36 to 1.38: 18 WASI functions, and poll_oneoff fails, so that a Go module dies when it
// sleeps, starts a timer or must wait for its collector.
func Envoy136() Profile {
	return Profile{
		Name:       "envoy-1.36",
		WASI:       slices.Clone(wasi136),
		PollErrno:  errnoNosys,
		StartCalls: slices.Clone(start136),
		AllocCalls: []string{"proxy_log", "fd_write", "clock_time_get"},
	}
}

// Envoy140 stands for Envoy 1.39 and later. It is the default.
func Envoy140() Profile {
	return Profile{
		Name:       "envoy-1.40",
		WASI:       slices.Concat(wasi136, wasi140),
		StartCalls: slices.Concat(start136, []string{"poll_oneoff"}, wasi140),
		AllocCalls: []string{"proxy_log", "fd_write", "clock_time_get", "poll_oneoff"},
	}
}

// Permissive links whatever a module imports and restricts no phase.
func Permissive() Profile {
	return Profile{Name: "permissive", WASI: slices.Concat(wasi136, wasi140), AnyImport: true}
}

// Profiles returns all profiles, the default one first.
func Profiles() []Profile { return []Profile{Envoy140(), Envoy136(), Permissive()} }

// ProfileByName finds a profile: envoy-1.36, envoy-1.40, permissive.
func ProfileByName(name string) (Profile, bool) {
	for _, p := range Profiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}
