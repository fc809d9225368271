package hostsim

// Functions on byte buffers. Source: proxy-wasm-cpp-host, src/exports.cc, and Envoy's Buffer in
// source/extensions/common/wasm/context.cc.

// writable is a buffer that the module may change while it is open.
type writable interface {
	open() bool
	setView(data []byte)
}

// buffer finds what a host call reads. target is nil for a buffer that no module can change. Most of those that exist only
// in their callbacks read as empty outside them, and only two are not found. Source: Envoy, Context::getBuffer.
func (v *vm) buffer(kind uint64) (data []byte, target writable, st Status) {
	k := bufferKind(uint32(kind))
	if k > bufferKindMax {
		return nil, nil, StatusBadArgument
	}
	c := v.target()
	if c == nil {
		return nil, nil, StatusNotFound
	}
	switch {
	case k == bufferVMConfig:
		return v.program.vmConfig, nil, StatusOK
	case k == bufferPluginConfig && c.root.reading && c.isRoot():
		return c.root.config, nil, StatusOK
	case k == bufferHTTPCall && c.root.answer != nil:
		return c.root.answer.Body, nil, StatusOK
	case k == bufferPluginConfig, k == bufferHTTPCall:
		return nil, nil, StatusNotFound
	case k == bufferCallData:
		return v.callData, nil, StatusOK
	case k == bufferGRPCReceive && c.root.grpcEvent != nil:
		return c.root.grpcEvent.message, c.root.grpcEvent, StatusOK
	case k == bufferRequestBody && c.stream != nil:
		return *c.stream.request.view(), &c.stream.request, StatusOK
	case k == bufferResponseBody && c.stream != nil:
		return *c.stream.response.view(), &c.stream.response, StatusOK
	case k == bufferDownstream && c.conn != nil:
		return c.conn.down.view(), &c.conn.down, StatusOK
	case k == bufferUpstream && c.conn != nil:
		return c.conn.up.view(), &c.conn.up, StatusOK
	}
	return nil, nil, StatusOK
}

func callGetBuffer(v *vm, a []uint64) Status {
	data, _, st := v.buffer(a[0])
	if st != StatusOK {
		return st
	}
	// Sums in 64 bits: modules ask for everything by passing the largest length.
	size := uint64(len(data))
	from := min(uint64(uint32(a[1])), size)
	to := min(uint64(uint32(a[1]))+uint64(uint32(a[2])), size)
	return give(v, data[from:to], a[3], a[4])
}

func callGetBufferStatus(v *vm, a []uint64) Status {
	data, _, st := v.buffer(a[0])
	if st != StatusOK {
		return st
	}
	if !v.putU32(a[1], uint32(len(data))) || !v.putU32(a[2], 0) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

func callSetBuffer(v *vm, a []uint64) Status {
	current, target, st := v.buffer(a[0])
	if st != StatusOK {
		return st
	}
	data, ok := v.read(a[3], a[4])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	if target == nil || !target.open() {
		return StatusBadArgument
	}
	start, length, size := uint32(a[1]), uint32(a[2]), uint32(len(current))
	switch {
	case start == 0 && length == 0:
		target.setView(concat(data, current))
	case start == 0 && length >= size:
		target.setView(concat(data, nil))
	case start == 0:
		target.setView(concat(data, current[length:]))
	case start >= size:
		target.setView(concat(current, data))
	default:
		// Envoy writes at the front or the end, never in between.
		return StatusBadArgument
	}
	return StatusOK
}

// concat joins two parts in memory of its own.
func concat(a, b []byte) []byte {
	out := make([]byte, 0, len(a)+len(b))
	return append(append(out, a...), b...)
}
