package hostsim

import (
	"slices"
	"time"
)

// Functions on gRPC call-outs, and the callbacks about them. Source for the refusals, the order of checks and the callbacks:
// Envoy, source/extensions/common/wasm/context.cc.

func callGRPCCall(v *vm, a []uint64) Status {
	c, named, st := v.readGRPC(a)
	request, ok := v.read(a[8], a[9])
	if st != StatusOK || !ok {
		return StatusInvalidMemoryAccess
	}
	c.Request = slices.Clone(request)
	c.Timeout = time.Duration(uint32(a[10])) * time.Millisecond
	return v.startGRPC(c, named, calloutGRPC, a[11])
}

func callGRPCStream(v *vm, a []uint64) Status {
	c, named, st := v.readGRPC(a)
	if st != StatusOK {
		return st
	}
	c.Stream = true
	return v.startGRPC(c, named, calloutGRPCStream, a[8])
}

// readGRPC reads what both kinds of call have. named is true where the service is a plain cluster name.
func (v *vm) readGRPC(a []uint64) (c *GRPCCall, named bool, st Status) {
	var parts [4][]byte
	for i := range parts {
		var ok bool
		if parts[i], ok = v.read(a[2*i], a[2*i+1]); !ok {
			return nil, false, StatusInvalidMemoryAccess
		}
	}
	c = &GRPCCall{Worker: v.worker, Service: string(parts[1]), Method: string(parts[2]), Metadata: decodePairs(parts[3]), host: v.host}
	target, isMessage := parseGRPCService(parts[0])
	c.Cluster = target
	if !isMessage {
		c.Cluster = string(parts[0])
	}
	return c, !isMessage, StatusOK
}

// startGRPC makes a call in the name of the plugin context. An unknown cluster is PARSE_FAILURE by name; inside a service
// message it is INTERNAL_FAILURE, and the callback comes nevertheless, with an id that the module was never given. The id
// is written last, when the call is under way.
func (v *vm) startGRPC(c *GRPCCall, named bool, kind calloutKind, idPtr uint64) Status {
	target := v.target()
	if target == nil {
		return StatusBadArgument
	}
	dispatch := v.host.config.GRPCCall
	known := c.Cluster != "" && dispatch != nil
	if known && c.Timeout > 0 {
		c.deadline = v.host.clock.Monotonic() + c.Timeout
	}
	known = known && dispatch(c)
	if !known && named {
		return StatusParseFailure
	}
	c.id = v.nextCallout(kind)
	switch {
	case c.Cluster == "":
		return StatusBadArgument
	case !known:
		r := target.root
		v.postpone(action{kind: actionDo, do: func() {
			v.tellGRPC(r, c, &grpcEvent{kind: grpcClosed, status: grpcStatusUnavailable, text: "Cluster not available"})
		}})
		return StatusInternalFailure
	}
	target.root.grpcCalls = append(target.root.grpcCalls, c)
	v.host.wakeTicker()
	if !v.putU32(idPtr, c.id) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

// findGRPC finds a call of the current plugin context, and says what is wrong with an id.
func (v *vm) findGRPC(id uint64) (r *root, c *GRPCCall, st Status) {
	target := v.target()
	kind := kindOfCallout(uint32(id))
	if target == nil || kind != calloutGRPC && kind != calloutGRPCStream {
		return nil, nil, StatusBadArgument
	}
	for _, c := range target.root.grpcCalls {
		if c.id == uint32(id) {
			return target.root, c, StatusOK
		}
	}
	return nil, nil, StatusNotFound
}

// callGRPCSend sends a message on a stream. One after the plugin's own end is accepted and lost.
func callGRPCSend(v *vm, a []uint64) Status {
	message, ok := v.read(a[1], a[2])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	if kindOfCallout(uint32(a[0])) != calloutGRPCStream {
		return StatusBadArgument
	}
	_, c, st := v.findGRPC(a[0])
	if st != StatusOK {
		return st
	}
	end := uint32(a[3]) != 0
	if c.OnSend != nil && !c.sentEnd && !c.remoteEnded {
		c.OnSend(slices.Clone(message), end)
	}
	c.sentEnd = c.sentEnd || end
	return StatusOK
}

// callGRPCCancel ends a call at once: no callback tells of it any more.
func callGRPCCancel(v *vm, a []uint64) Status {
	r, c, st := v.findGRPC(a[0])
	if st == StatusOK {
		r.forget(c)
		c.drop()
	}
	return st
}

// callGRPCClose closes the plugin's side of a stream, whose answers still come, and cancels a unary call.
func callGRPCClose(v *vm, a []uint64) Status {
	r, c, st := v.findGRPC(a[0])
	switch {
	case st != StatusOK:
		return st
	case !c.Stream:
		r.forget(c)
		c.drop()
		return StatusOK
	}
	if c.OnClose != nil && !c.sentEnd && !c.remoteEnded {
		c.OnClose(false)
	}
	c.sentEnd, c.localClosed = true, true
	if c.remoteEnded {
		r.forget(c)
	}
	return StatusOK
}

func (r *root) forget(c *GRPCCall) {
	r.grpcCalls = slices.DeleteFunc(r.grpcCalls, func(x *GRPCCall) bool { return x == c })
}

// dropGRPC throws away the calls of a plugin context that ends.
func (r *root) dropGRPC() {
	calls := r.grpcCalls
	r.grpcCalls = nil
	for _, c := range calls {
		c.drop()
	}
}

// nextGRPC finds the callback about a gRPC call that comes first, or nil.
func (v *vm) nextGRPC() (r *root, c *GRPCCall, due *grpcEvent) {
	if v.dead != nil {
		return nil, nil, nil
	}
	for _, each := range v.roots {
		for _, call := range each.grpcCalls {
			if e := call.due(); e != nil && (due == nil || e.at < due.at) {
				r, c, due = each, call, e
			}
		}
	}
	return r, c, due
}

// deliverGRPC runs one callback about a call. A unary call is over with it; a stream when both sides have closed.
func (v *vm) deliverGRPC(r *root, c *GRPCCall, e *grpcEvent) {
	c.take(e)
	if e.timedOut {
		c.drop()
	}
	c.remoteEnded = !c.Stream || e.kind == grpcClosed
	v.tellGRPC(r, c, e)
	if !c.Stream || e.kind == grpcClosed && c.localClosed {
		r.forget(c)
	}
	v.settle()
}

func (v *vm) tellGRPC(r *root, c *GRPCCall, e *grpcEvent) {
	var call *export
	var argument int
	switch e.kind {
	case grpcInitial:
		call, argument = v.grpcInitial, len(e.headers)
	case grpcMessage:
		call, argument = v.grpcReceive, len(e.message)
	case grpcTrailing:
		call, argument = v.grpcTrailing, len(e.headers)
	case grpcClosed:
		call, argument = v.grpcClose, int(e.status)
	}
	if call == nil {
		return
	}
	if e.kind == grpcClosed {
		r.status, r.statusMessage = e.status, e.text
	}
	r.grpcEvent = e
	_, _ = v.callback(&r.guestContext, call, uint64(r.id), uint64(c.id), uint64(argument))
	r.grpcEvent, r.statusMessage = nil, ""
}
