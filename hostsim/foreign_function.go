package hostsim

import (
	"bytes"
	"compress/zlib"
	"io"
	"maps"
)

// ForeignFunction is a function that a host offers to plugins by name, beyond the specification
// (proxy_call_foreign_function). argument is a view of the plugin's memory, valid until the function returns. An empty
// result means none. It runs while the caller's worker is held, so it must not call into the Host. worker is the caller's
// number, MainThread or Canary.
type ForeignFunction func(worker int, argument []byte) (result []byte, status Status)

// EnvoyForeignFunctions returns those of Envoy's own foreign functions that need nothing but their argument: compress,
// uncompress, and clear_route_cache, which has nothing to clear here. They are there without being asked for. Envoy's others
// (declare_property, expr_create, expr_evaluate, expr_delete, set_envoy_filter_state, sign, verify_signature) are not found
// unless Config.ForeignFunctions has them.
func EnvoyForeignFunctions() map[string]ForeignFunction {
	return map[string]ForeignFunction{
		"compress":          compress,
		"uncompress":        uncompress,
		"clear_route_cache": func(int, []byte) ([]byte, Status) { return nil, StatusOK },
	}
}

// foreignFunctions are Envoy's and those of the configuration, which come first.
func (c *Config) foreignFunctions() map[string]ForeignFunction {
	all := EnvoyForeignFunctions()
	maps.Copy(all, c.ForeignFunctions)
	return all
}

func compress(_ int, argument []byte) ([]byte, Status) {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write(argument); err != nil {
		return nil, StatusSerializationFailure
	}
	if err := w.Close(); err != nil {
		return nil, StatusSerializationFailure
	}
	return b.Bytes(), StatusOK
}

// maxUncompressed bounds what uncompress makes of a small argument, so that a plugin cannot exhaust the host.
const maxUncompressed = 64 << 20

func uncompress(_ int, argument []byte) ([]byte, Status) {
	r, err := zlib.NewReader(bytes.NewReader(argument))
	if err != nil {
		return nil, StatusSerializationFailure
	}
	out, err := io.ReadAll(io.LimitReader(r, maxUncompressed+1))
	if err != nil || len(out) > maxUncompressed {
		return nil, StatusSerializationFailure
	}
	return out, StatusOK
}

// callForeignFunction hands over the result whatever the status; without one it writes address 0 and size 0. Either
// pointer may be 0. Source: proxy-wasm-cpp-host, src/exports.cc.
func callForeignFunction(v *vm, a []uint64) Status {
	name, ok1 := v.read(a[0], a[1])
	argument, ok2 := v.read(a[2], a[3])
	if !ok1 || !ok2 {
		return StatusInvalidMemoryAccess
	}
	f := v.host.foreign[string(name)]
	if f == nil {
		return StatusNotFound
	}
	result, st := f(v.worker, argument)
	if given := giveWanted(v, result, a[4], a[5]); given != StatusOK {
		return given
	}
	return st
}

// CallForeignFunction calls the plugin's proxy_on_foreign_function in the plugin context in force, on this worker. The
// plugin reads argument as its call data during the callback. A module of ABI 0.1.0, or without that export, is not called.
// Envoy itself never calls it: it is for hosts built on it. The error wraps ErrTrap when the plugin crashed.
func (w *Worker) CallForeignFunction(id uint32, argument []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.vm
	if v.dead != nil {
		return v.dead
	}
	if v.foreignFunction == nil {
		return nil
	}
	r := v.activeRoot()
	v.callData = argument
	_, err := v.callback(&r.guestContext, v.foreignFunction, uint64(r.id), uint64(id), uint64(len(argument)))
	v.callData = nil
	v.settle()
	return err
}
