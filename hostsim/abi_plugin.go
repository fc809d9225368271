package hostsim

import (
	"strings"
	"time"
)

// Functions about the plugin as a whole: log, time, timer, contexts.

func callLog(v *vm, a []uint64) Status {
	level := LogLevel(uint32(a[0]))
	if level > LogCritical {
		return StatusBadArgument
	}
	msg, ok := v.read(a[1], a[2])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	if level >= v.host.config.LogLevel {
		v.host.log(v.worker, level, strings.TrimSuffix(string(msg), "\n"))
	}
	return StatusOK
}

func callGetLogLevel(v *vm, a []uint64) Status {
	if !v.putU32(a[0], uint32(v.host.config.LogLevel)) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

func callGetTime(v *vm, a []uint64) Status {
	if !v.putU64(a[0], uint64(v.host.clock.Now().UnixNano())) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

func callSetTickPeriod(v *vm, a []uint64) Status {
	c := v.target()
	if c == nil {
		return StatusBadArgument
	}
	v.setPeriod(c.root, time.Duration(uint32(a[0]))*time.Millisecond)
	return StatusOK
}

func callSetEffectiveContext(v *vm, a []uint64) Status {
	if uint32(a[0]) == 0 { // the virtual machine itself, which has no stream
		if c := v.target(); c != nil {
			v.effective = &c.root.guestContext
		}
		return StatusOK
	}
	c := v.contexts[uint32(a[0])]
	if c == nil {
		return StatusBadArgument
	}
	v.effective = c
	return StatusOK
}

// callDone ends a plugin context whose done callback answered false. A stream's context has nothing to wait for: Envoy
// deletes it right after done, whatever that answered (source/extensions/common/wasm/context.cc, onDestroy).
func callDone(v *vm, _ []uint64) Status {
	c := v.target()
	if c == nil || !c.isRoot() || !c.root.waiting {
		return StatusNotFound
	}
	c.root.waiting = false
	v.postpone(action{kind: actionRemoveRoot, root: c.root})
	return StatusOK
}

// callGetConfiguration answers the plugin configuration while that is read, and at any other time the virtual machine's.
// Source: Envoy, Context::getConfiguration.
func callGetConfiguration(v *vm, a []uint64) Status {
	if c := v.target(); c != nil && c.root.reading && c.isRoot() {
		return give(v, c.root.config, a[0], a[1])
	}
	return give(v, v.program.vmConfig, a[0], a[1])
}

func callPthreadEqual(_ *vm, a []uint64) uint32 {
	if uint32(a[0]) == uint32(a[1]) {
		return 1
	}
	return 0
}

func callNotifyMemoryGrowth(*vm, []uint64) uint32 { return 0 }

// callGetStatus answers about the last call-out: 11 and "reset" after an HTTP call that was reset, the gRPC status and
// message after a gRPC call that was closed. The message is there only during the callback that tells of it, the number
// until the next such callback. Source: Envoy, Context::onHttpCallFailure and onGrpcCloseWrapper.
func callGetStatus(v *vm, a []uint64) Status {
	c := v.target()
	if c == nil {
		return StatusBadArgument
	}
	if !v.putU32(a[0], c.root.status) {
		return StatusInvalidMemoryAccess
	}
	return give(v, c.root.statusMessage, a[1], a[2])
}
