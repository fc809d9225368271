package hostsim

import (
	"testing"
)

// wasiCase is a call of a WASI function, what it answers, and what then lies at address 512: a byte there is 0xff before.
type wasiCase struct {
	args  []uint64
	errno uint32
	at512 string // hex of the bytes that the call has written there
}

// far is an address outside of the module's memory.
const far = 0xffffff00

// wasiCases has at least one call of each WASI function. Source: proxy-wasm-cpp-host, src/exports.cc. The vector at 256
// holds "ab" at 320 and an empty vector at a bad address; the one at 272 has a bad address. The module has one page of memory.
var wasiCases = map[string][]wasiCase{
	"fd_write": {
		{[]uint64{1, 256, 2, 512}, 0, "02000000"}, {[]uint64{2, 256, 0, 512}, 0, "00000000"},
		{[]uint64{0, 256, 2, 512}, 8, ""}, {[]uint64{3, 256, 2, 512}, 8, ""},
		{[]uint64{1, 256, 2, far}, 21, ""}, {[]uint64{1, far, 1, 512}, 21, ""}, {[]uint64{1, 272, 1, 512}, 21, ""},
	},
	"fd_read":             {{[]uint64{0, 256, 1, 512}, 52, ""}},
	"fd_seek":             {{[]uint64{9, 1, 0, 512}, 0, ""}},
	"fd_close":            {{[]uint64{9}, 0, ""}},
	"fd_fdstat_get":       {{[]uint64{1, 512}, 0, "0000000000000000" + "4000000000000000" + "0000000000000000"}, {[]uint64{0, 512}, 8, ""}, {[]uint64{2, far}, 0, ""}},
	"fd_fdstat_set_flags": {{[]uint64{1, 0}, 52, ""}},
	"environ_sizes_get":   {{[]uint64{512, 516}, 0, "0200000008000000"}, {[]uint64{far, 516}, 21, ""}, {[]uint64{600, far}, 21, ""}},
	"environ_get":         {{[]uint64{600, 512}, 0, "413d6200433d6400"}, {[]uint64{far, 512}, 21, ""}, {[]uint64{600, far}, 21, ""}},
	"args_get":            {{[]uint64{512, 512}, 0, ""}},
	"args_sizes_get":      {{[]uint64{512, 516}, 0, "0000000000000000"}, {[]uint64{far, 516}, 21, ""}},
	"clock_time_get":      {{[]uint64{0, 0, 512}, 0, "0000faed51728618"}, {[]uint64{2, 0, 512}, 58, ""}, {[]uint64{3, 0, 512}, 58, ""}, {[]uint64{0, 0, far}, 21, ""}},
	"clock_res_get":       {{[]uint64{0, 512}, 0, "0100000000000000"}, {[]uint64{1, 512}, 0, "0100000000000000"}, {[]uint64{2, 512}, 58, ""}, {[]uint64{0, far}, 21, ""}},
	"random_get":          {{[]uint64{600, 64 << 10}, 21, ""}, {[]uint64{0, 64<<10 + 1}, 28, ""}, {[]uint64{far, 0}, 0, ""}, {[]uint64{far, 1}, 21, ""}, {[]uint64{600, 8}, 0, ""}},
	"sched_yield":         {{nil, 0, ""}},
	"poll_oneoff":         {{[]uint64{0, 0, 1, 512}, 0, "00000000"}, {[]uint64{0, 0, 0, far}, 21, ""}},
	"path_open":           {{[]uint64{3, 0, 256, 2, 0, 0, 0, 0, 512}, 44, ""}},
	"fd_prestat_get":      {{[]uint64{3, 512}, 8, ""}},
	"fd_prestat_dir_name": {{[]uint64{3, 512, 1}, 52, ""}},

	"fd_fdstat_set_rights":    {{[]uint64{1}, 0, ""}, {[]uint64{0}, 8, ""}},
	"fd_advise":               {{[]uint64{9}, 0, ""}},
	"fd_allocate":             {{[]uint64{2}, 0, ""}, {[]uint64{3}, 8, ""}},
	"fd_datasync":             {{[]uint64{1}, 0, ""}, {[]uint64{3}, 8, ""}},
	"fd_filestat_get":         {{[]uint64{1, 512}, 8, ""}},
	"fd_filestat_set_size":    {{[]uint64{1}, 0, ""}, {[]uint64{3}, 8, ""}},
	"fd_filestat_set_times":   {{[]uint64{1}, 0, ""}, {[]uint64{3}, 8, ""}},
	"fd_pread":                {{[]uint64{1, 256, 1, 0, 512}, 52, ""}},
	"fd_pwrite":               {{[]uint64{1, 256, 2, 7, 512}, 0, "02000000"}, {[]uint64{3, 256, 2, 7, 512}, 8, ""}, {[]uint64{1, 256, 2, 7, far}, 21, ""}},
	"fd_readdir":              {{[]uint64{3, 600, 8, 0, 512}, 20, "00000000"}, {[]uint64{3, 600, 8, 0, far}, 21, ""}},
	"fd_renumber":             {{[]uint64{1, 2}, 58, ""}, {[]uint64{3, 1}, 8, ""}, {[]uint64{1, 0}, 8, ""}},
	"fd_sync":                 {{[]uint64{1}, 0, ""}, {[]uint64{3}, 8, ""}},
	"fd_tell":                 {{[]uint64{1, 512}, 0, "0000000000000000"}, {[]uint64{3, 512}, 8, ""}, {[]uint64{1, far}, 21, ""}},
	"path_create_directory":   {{nil, 58, ""}},
	"path_filestat_get":       {{nil, 58, ""}},
	"path_filestat_set_times": {{nil, 58, ""}},
	"path_link":               {{nil, 58, ""}},
	"path_readlink":           {{[]uint64{3, 256, 2, 600, 8, 512}, 58, "00000000"}, {[]uint64{3, 256, 2, 600, 8, far}, 21, ""}},
	"path_remove_directory":   {{nil, 58, ""}},
	"path_rename":             {{nil, 58, ""}},
	"path_symlink":            {{nil, 58, ""}},
	"path_unlink_file":        {{nil, 58, ""}},
	"sock_accept":             {{[]uint64{3, 0, 512}, 58, "0000000000000000"}, {[]uint64{3, 0, far}, 21, ""}},
	"sock_recv":               {{[]uint64{3, 256, 1, 0, 512, 516}, 58, "000000000000"}, {[]uint64{3, 256, 1, 0, far, 516}, 21, ""}, {[]uint64{3, 256, 1, 0, 600, far}, 21, ""}},
	"sock_send":               {{[]uint64{3, 256, 1, 0, 512}, 58, "00000000"}, {[]uint64{3, 256, 1, 0, far}, 21, ""}},
	"sock_shutdown":           {{nil, 58, ""}},
}

// Every WASI function has a case and answers alike under both names.
func TestWASIAnswers(t *testing.T) {
	c := newCaller(t, "0.2.1", Envoy140(), func(c *Config) { c.Env = map[string]string{"A": "b", "C": "d"} })
	mem := c.v.mem
	for i, word := range []uint32{320, 2, far, 0, far, 1} {
		mem.WriteUint32Le(uint32(256+4*i), word)
	}
	mem.WriteString(320, "ab")
	for _, f := range wasiFuncs {
		if len(wasiCases[f.name]) == 0 && f.name != "proc_exit" { // see TestProcExit
			t.Errorf("%s has no case", f.name)
		}
		for _, tt := range wasiCases[f.name] {
			for _, module := range []string{moduleWASI, moduleWASIUnstable} {
				fillFF(mem, 512, 64)
				errno, err := c.call(phaseRun, module+"."+f.name, tt.args...)
				ok(t, err)
				if got := writtenHex(mem, 512, len(tt.at512)/2); errno != tt.errno || got != tt.at512 {
					t.Errorf("%s.%s%v: errno %d, memory %s, want %d %s", module, f.name, tt.args, errno, got, tt.errno, tt.at512)
				}
			}
		}
	}
	for name := range wasiCases {
		if findHostFunc(moduleWASI, name) == nil {
			t.Errorf("a case for %s, which is not there", name)
		}
	}
}

// poll_oneoff fails before Envoy 1.39.
func TestPollByProfile(t *testing.T) {
	c := newCaller(t, "0.2.1", Envoy136())
	if errno, err := c.call(phaseRun, "wasi_unstable.poll_oneoff", 0, 0, 1, 512); err != nil || errno != errnoNosys {
		t.Errorf("errno %d, %v", errno, err)
	}
}

// The monotonic clock moves on at every read, the time of day does not.
func TestMonotonicClockMoves(t *testing.T) {
	c := newCaller(t, "0.2.1", Envoy140())
	read := func(clock uint64) uint64 {
		_, err := c.call(phaseRun, "wasi_snapshot_preview1.clock_time_get", clock, 0, 512)
		ok(t, err)
		now, _ := c.v.mem.ReadUint64Le(512)
		return now
	}
	if a, b := read(1), read(1); b <= a {
		t.Errorf("monotonic %d, then %d", a, b)
	}
	if a, b := read(0), read(0); a != b {
		t.Errorf("time of day %d, then %d", a, b)
	}
}
