package hostsim

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// The WASI functions of a gateway: a clock, random numbers, environment, standard output and error as log lines, and no
// files. Names, parameters and answers: proxy-wasm-cpp-host, include/proxy-wasm/exports.h and src/exports.cc.

// wasiErrno answers the same always.
func wasiErrno(errno uint32) func(*vm, []uint64) uint32 {
	return func(*vm, []uint64) uint32 { return errno }
}

// wasiStdio answers success for standard output and error, where the call has nothing to do, and EBADF for all else.
func wasiStdio(_ *vm, a []uint64) uint32 {
	if fd := uint32(a[0]); fd != 1 && fd != 2 {
		return errnoBadf
	}
	return errnoSuccess
}

// wasiZero zeroes size bytes where parameter i points to, and answers errno.
func wasiZero(i, size int, errno uint32) func(*vm, []uint64) uint32 {
	return func(v *vm, a []uint64) uint32 {
		if !v.mem.Write(uint32(a[i]), make([]byte, size)) {
			return errnoFault
		}
		return errno
	}
}

// wasiReceive has two results to zero: a size and flags of two bytes.
func wasiReceive(v *vm, a []uint64) uint32 {
	if !v.putU32(a[4], 0) || !v.mem.WriteUint16Le(uint32(a[5]), 0) {
		return errnoFault
	}
	return errnoNotsup
}

func wasiRenumber(v *vm, a []uint64) uint32 {
	if errno := max(wasiStdio(v, a), wasiStdio(v, a[1:])); errno != errnoSuccess {
		return errno
	}
	return errnoNotsup
}

var wasiFuncs = []hostFunc{
	{name: "fd_write", params: "fd data[ written=", call: wasiWrite},
	{name: "fd_read", params: "fd vectors! count read=", call: wasiErrno(errnoNosys)},
	{name: "fd_seek", params: "fd offset64- whence position:", call: wasiErrno(errnoSuccess)},
	{name: "fd_close", params: "fd", call: wasiErrno(errnoSuccess)},
	{name: "fd_fdstat_get", params: "fd stat=", call: wasiFdstat},
	{name: "fd_fdstat_set_flags", params: "fd flags", call: wasiErrno(errnoNosys)},
	{name: "environ_get", params: "array! buffer!", call: wasiEnviron},
	{name: "environ_sizes_get", params: "count= size=", call: wasiEnvironSizes},
	{name: "args_get", params: "array! buffer!", call: wasiErrno(errnoSuccess)},
	{name: "args_sizes_get", params: "count= size=", call: wasiArgsSizes},
	{name: "clock_time_get", params: "clock precision64 time:", call: wasiClock},
	{name: "random_get", params: "bytes= length", call: wasiRandom},
	{name: "sched_yield", call: wasiErrno(errnoSuccess)},
	{name: "poll_oneoff", params: "subscriptions! events! count written=", call: wasiPoll},
	{name: "proc_exit", params: "code", void: true, call: wasiExit},
	{name: "path_open", params: "fd dirflags path* oflags rights64 inheriting64 fdflags opened=", call: wasiErrno(errnoNoent)},
	{name: "fd_prestat_get", params: "fd prestat=", call: wasiErrno(errnoBadf)},
	{name: "fd_prestat_dir_name", params: "fd path! length", call: wasiErrno(errnoNosys)},

	{name: "fd_fdstat_set_rights", params: "fd base64 inheriting64", call: wasiStdio},
	{name: "clock_res_get", params: "clock resolution:", call: wasiClockRes},
	{name: "fd_advise", params: "fd offset64 length64 advice", call: wasiErrno(errnoSuccess)},
	{name: "fd_allocate", params: "fd offset64 length64", call: wasiStdio},
	{name: "fd_datasync", params: "fd", call: wasiStdio},
	{name: "fd_filestat_get", params: "fd stat=", call: wasiErrno(errnoBadf)},
	{name: "fd_filestat_set_size", params: "fd size64", call: wasiStdio},
	{name: "fd_filestat_set_times", params: "fd accessed64 modified64 flags", call: wasiStdio},
	{name: "fd_pread", params: "fd vectors! count offset64 read=", call: wasiErrno(errnoNosys)},
	{name: "fd_pwrite", params: "fd data[ offset64 written=", call: func(v *vm, a []uint64) uint32 {
		return wasiWrite(v, []uint64{a[0], a[1], a[2], a[4]})
	}},
	{name: "fd_readdir", params: "fd buffer! length cookie64 used=", call: wasiZero(4, 4, errnoNotdir)},
	{name: "fd_renumber", params: "fd to", call: wasiRenumber},
	{name: "fd_sync", params: "fd", call: wasiStdio},
	{name: "fd_tell", params: "fd position:", call: wasiTell},
	{name: "path_create_directory", params: "fd path*", call: wasiErrno(errnoNotsup)},
	{name: "path_filestat_get", params: "fd flags path* stat=", call: wasiErrno(errnoNotsup)},
	{name: "path_filestat_set_times", params: "fd flags path* accessed64 modified64 which", call: wasiErrno(errnoNotsup)},
	// This one and path_symlink have a parameter less than WASI says: a module that imports them as they should be does
	// not load.
	{name: "path_link", params: "fd flags old* new_fd new!", call: wasiErrno(errnoNotsup)},
	{name: "path_readlink", params: "fd path* buffer! length used=", call: wasiZero(5, 4, errnoNotsup)},
	{name: "path_remove_directory", params: "fd path*", call: wasiErrno(errnoNotsup)},
	{name: "path_rename", params: "fd old* new_fd new*", call: wasiErrno(errnoNotsup)},
	{name: "path_symlink", params: "old* fd new!", call: wasiErrno(errnoNotsup)},
	{name: "path_unlink_file", params: "fd path*", call: wasiErrno(errnoNotsup)},
	{name: "sock_accept", params: "fd flags opened=", call: wasiZero(2, 8, errnoNotsup)},
	{name: "sock_recv", params: "fd vectors! count flags received= out_flags=", call: wasiReceive},
	{name: "sock_send", params: "fd data[ flags sent=", call: wasiZero(4, 4, errnoNotsup)},
	{name: "sock_shutdown", params: "fd how", call: wasiErrno(errnoNotsup)},
}

// maxWrite bounds one write, in bytes: its parts may overlap, and so be of any sum.
const maxWrite = 16 << 20

// wasiWrite makes one log entry of one write, at level info for standard output and error for standard error.
func wasiWrite(v *vm, a []uint64) uint32 {
	level := LogInfo
	switch uint32(a[0]) {
	case 1:
	case 2:
		level = LogError
	default:
		return errnoBadf
	}
	var text strings.Builder
	for i := range uint64(uint32(a[2])) {
		at := uint32(a[1]) + uint32(8*i)
		ptr, ok1 := v.mem.ReadUint32Le(at)
		size, ok2 := v.mem.ReadUint32Le(at + 4)
		if !ok1 || !ok2 {
			return errnoFault
		}
		if size == 0 { // wherever it points to
			continue
		}
		part, ok3 := v.mem.Read(ptr, size)
		if !ok3 {
			return errnoFault
		}
		if text.Len()+len(part) > maxWrite {
			return errnoInval
		}
		text.Write(part)
	}
	if text.Len() > 0 {
		v.host.log(v.worker, level, strings.TrimSuffix(text.String(), "\n"))
	}
	if !v.putU32(a[3], uint32(text.Len())) {
		return errnoFault
	}
	return errnoSuccess
}

// wasiFdstat describes standard output and error as writable and nothing else. It succeeds also where it cannot write.
func wasiFdstat(v *vm, a []uint64) uint32 {
	if errno := wasiStdio(v, a); errno != errnoSuccess {
		return errno
	}
	// Character device and flags, 0; base rights, 64 for writing; inherited rights, 0.
	v.putBytes(a[1], []byte{8: 64, 23: 0})
	return errnoSuccess
}

func wasiTell(v *vm, a []uint64) uint32 {
	if errno := wasiStdio(v, a); errno != errnoSuccess {
		return errno
	}
	if !v.putU64(a[1], 0) {
		return errnoFault
	}
	return errnoSuccess
}

// environment is the module's environment as NAME=value, each ended by a zero byte, in the order of names.
func (v *vm) environment() []string { return environmentOf(v.host.config.Env) }

func environmentOf(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name]+"\x00")
	}
	return out
}

func wasiEnvironSizes(v *vm, a []uint64) uint32 {
	env := v.environment()
	if !v.putU32(a[0], uint32(len(env))) || !v.putU32(a[1], uint32(len(strings.Join(env, "")))) {
		return errnoFault
	}
	return errnoSuccess
}

func wasiEnviron(v *vm, a []uint64) uint32 {
	array, buf := a[0], uint32(a[1])
	for _, entry := range v.environment() {
		if !v.mem.WriteUint32Le(uint32(array), buf) || !v.mem.WriteString(buf, entry) {
			return errnoFault
		}
		array += 4
		buf += uint32(len(entry))
	}
	return errnoSuccess
}

func wasiArgsSizes(v *vm, a []uint64) uint32 {
	if !v.putU32(a[0], 0) || !v.putU32(a[1], 0) {
		return errnoFault
	}
	return errnoSuccess
}

// The clocks that a gateway has.
const (
	clockRealtime  = 0
	clockMonotonic = 1
)

func wasiClock(v *vm, a []uint64) uint32 {
	var now uint64
	switch uint32(a[0]) {
	case clockRealtime:
		now = uint64(v.host.clock.Now().UnixNano())
	case clockMonotonic:
		now = uint64(v.monotonic())
	default:
		return errnoNotsup
	}
	if !v.putU64(a[2], now) {
		return errnoFault
	}
	return errnoSuccess
}

func wasiClockRes(v *vm, a []uint64) uint32 {
	if uint32(a[0]) > clockMonotonic {
		return errnoNotsup
	}
	if !v.putU64(a[1], 1) {
		return errnoFault
	}
	return errnoSuccess
}

// maxRandom bounds one request for random bytes. Source: proxy-wasm-cpp-host, wasi_unstable_random_get.
const maxRandom = 64 << 10

func wasiRandom(v *vm, a []uint64) uint32 {
	if uint32(a[1]) > maxRandom {
		return errnoInval
	}
	if uint32(a[1]) == 0 {
		return errnoSuccess
	}
	buf, ok := v.read(a[0], a[1])
	if !ok {
		return errnoFault
	}
	_, _ = v.rng.Read(buf)
	if v.rec != nil {
		v.rec.wroteBytes(a[0], buf)
	}
	return errnoSuccess
}

// wasiPoll returns at once and never reports an event, on the gateways where it does not fail.
func wasiPoll(v *vm, a []uint64) uint32 {
	if errno := v.host.config.Profile.PollErrno; errno != errnoSuccess {
		return errno
	}
	if !v.putU32(a[3], 0) {
		return errnoFault
	}
	return errnoSuccess
}

var errExit = errors.New("the module called proc_exit")

func wasiExit(*vm, []uint64) uint32 { panic(errExit) }
