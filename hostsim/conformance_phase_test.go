package hostsim

import (
	"strings"
	"testing"
)

// What is legal while a module starts and while it allocates, written down from proxy-wasm-cpp-host (src/wasm.cc,
// startVm; include/proxy-wasm/wasm.h, allocMemory) and not from the profiles. Anything else ends the virtual machine.
const (
	legalAtStart136 = `emscripten_notify_memory_growth proxy_log fd_write args_sizes_get args_get environ_sizes_get environ_get
		fd_prestat_get fd_prestat_dir_name clock_time_get random_get fd_fdstat_get fd_fdstat_set_flags`
	legalAtStart140 = legalAtStart136 + ` poll_oneoff clock_res_get fd_advise fd_allocate fd_datasync fd_fdstat_set_rights
		fd_filestat_get fd_filestat_set_size fd_filestat_set_times fd_pread fd_pwrite fd_readdir fd_renumber fd_sync fd_tell
		path_create_directory path_filestat_get path_filestat_set_times path_link path_readlink path_remove_directory
		path_rename path_symlink path_unlink_file sock_accept sock_recv sock_send sock_shutdown`
	legalInAlloc136 = "proxy_log fd_write clock_time_get"
	legalInAlloc140 = legalInAlloc136 + " poll_oneoff"
)

// Every function in every phase, under both profiles of Envoy and both names of WASI.
func TestPhases(t *testing.T) {
	for _, tt := range []struct {
		profile      Profile
		start, alloc string
	}{
		{Envoy136(), legalAtStart136, legalInAlloc136},
		{Envoy140(), legalAtStart140, legalInAlloc140},
	} {
		for _, abi := range []string{"0.1.0", "0.2.1"} {
			c := newCaller(t, abi, tt.profile)
			seen := 0
			c.eachFunc(func(module, name string) {
				if name == "proc_exit" {
					return // traps in every phase
				}
				seen++
				for ph, legal := range map[phase]string{phaseStart: tt.start, phaseAlloc: tt.alloc} {
					want := containsWord(legal, name)
					_, err := c.call(ph, module+"."+name)
					refused := err != nil && strings.Contains(err.Error(), "not allowed during "+ph.String())
					if refused == want || want && err != nil {
						t.Errorf("%s, ABI %s: %s.%s during %s: err %v, want it legal: %v", tt.profile.Name, abi, module, name, ph, err, want)
					}
				}
			})
			if seen < 70 {
				t.Errorf("only %d functions", seen)
			}
		}
	}
	c := newCaller(t, "0.2.1", Permissive())
	c.eachFunc(func(module, name string) {
		if name == "proc_exit" || name == "proxy_get_buffer_bytes" {
			return
		}
		if _, err := c.call(phaseStart, module+"."+name); err != nil {
			t.Errorf("permissive: %s.%s: %v", module, name, err)
		}
	})
}

func containsWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// A host that hands over nothing does not ask the module for memory, and one that does calls its allocator, in which host
// calls are not legal. Restates proxy-wasm-cpp-host, wasm_test.cc and exports tests: MallocNoHostcalls.
func TestAllocatorIsCalledForDataOnly(t *testing.T) {
	for config, want := range map[string]uint64{"": 0, "x": 3} { // canary, main thread, worker
		p := newProbe(t, "configure buf 6 0 100", func(c *Config) { c.VMConfig = []byte(config) })
		before := p.Counters().Callbacks["proxy_on_memory_allocate"]
		q := newProbe(t, "configure log 2 none at all", func(c *Config) { c.VMConfig = []byte(config) })
		if got := before - q.Counters().Callbacks["proxy_on_memory_allocate"]; got != want {
			t.Errorf("%q: %d allocations, want %d", config, got, want)
		}
	}
}
