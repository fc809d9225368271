package hostsim

// Functions on byte buffers. Source: proxy-wasm-cpp-host, src/exports.cc, and Envoy's Buffer in
// source/extensions/common/wasm/context.cc.

// buffer finds what a host call reads. The half is nil for a buffer that the module cannot change.
func (v *vm) buffer(kind uint64) (data []byte, body *half, st Status) {
	k := bufferKind(uint32(kind))
	if k > bufferKindMax {
		return nil, nil, StatusBadArgument
	}
	c := v.target()
	if c == nil {
		return nil, nil, StatusNotFound
	}
	switch k {
	case bufferVMConfig:
		return v.host.config.VMConfig, nil, StatusOK
	case bufferPluginConfig:
		// Only while vm_start or configure reads it.
		if c.root.reading {
			return c.root.config, nil, StatusOK
		}
	case bufferHTTPCall:
		if c.root.answer != nil {
			return c.root.answer.Body, nil, StatusOK
		}
	case bufferRequestBody:
		if c.stream != nil {
			return *c.stream.request.view(), &c.stream.request, StatusOK
		}
		return nil, nil, StatusOK
	case bufferResponseBody:
		if c.stream != nil {
			return *c.stream.response.view(), &c.stream.response, StatusOK
		}
		return nil, nil, StatusOK
	}
	return nil, nil, StatusNotFound
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
	current, body, st := v.buffer(a[0])
	if st != StatusOK {
		return st
	}
	data, ok := v.read(a[3], a[4])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	if body == nil || !body.bodyOpen {
		return StatusBadArgument
	}
	start, length, size := uint32(a[1]), uint32(a[2]), uint32(len(current))
	switch {
	case start == 0 && length == 0:
		body.setView(concat(data, current))
	case start == 0 && length >= size:
		body.setView(concat(data, nil))
	case start == 0:
		body.setView(concat(data, current[length:]))
	case start >= size:
		body.setView(concat(current, data))
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
