package hostsim

import (
	"slices"
	"strings"
)

// Functions that steer a stream. What they ask for happens when the callback has returned.

// The stream types of continue and close. Source: proxy-wasm specification 0.2.1, proxy_stream_type_t.
const (
	streamRequest    = 0
	streamResponse   = 1
	streamDownstream = 2
	streamUpstream   = 3
)

func callSendLocalResponse(v *vm, a []uint64) Status {
	details, ok1 := v.read(a[1], a[2])
	body, ok2 := v.read(a[3], a[4])
	pairs, ok3 := v.read(a[5], a[6])
	if !ok1 || !ok2 || !ok3 {
		return StatusInvalidMemoryAccess
	}
	if s := v.stream(); s != nil {
		v.postpone(action{kind: actionReply, stream: s, reply: &LocalReply{
			Status:     int(uint32(a[0])),
			Headers:    decodePairs(pairs),
			Body:       slices.Clone(body),
			Details:    strings.Join(strings.Fields(string(details)), "_"),
			GRPCStatus: grpcStatus(uint32(a[7])),
		}})
	}
	// From here to the end of the callback its own answer counts no more: the stream stops.
	v.stopped = true
	return StatusOK
}

// grpcStatus maps everything outside 0 to 16, and so the SDKs' -1, to -1: no status.
func grpcStatus(code uint32) int32 {
	if code > 16 {
		return -1
	}
	return int32(code)
}

func callContinueStream(v *vm, a []uint64) Status {
	switch uint32(a[0]) {
	case streamRequest:
		return v.continueStream(actionContinueRequest)
	case streamResponse:
		return v.continueStream(actionContinueResponse)
	case streamDownstream:
		if c := v.conn(); c != nil {
			v.postpone(action{kind: actionDo, do: c.resume})
		}
		return StatusOK
	case streamUpstream:
		return StatusUnimplemented
	}
	return StatusBadArgument
}

func callContinueRequest(v *vm, _ []uint64) Status  { return v.continueStream(actionContinueRequest) }
func callContinueResponse(v *vm, _ []uint64) Status { return v.continueStream(actionContinueResponse) }

// continueStream closes the request's maps at once, whichever direction goes on. Source: Envoy, Context::continueStream.
func (v *vm) continueStream(kind actionKind) Status {
	if s := v.stream(); s != nil {
		v.postpone(action{kind: kind, stream: s})
		s.request.shut()
	}
	return StatusOK
}

func callCloseStream(v *vm, a []uint64) Status {
	switch uint32(a[0]) {
	case streamRequest, streamResponse:
		if s := v.stream(); s != nil {
			v.postpone(action{kind: actionReset, stream: s})
		}
		return StatusOK
	case streamDownstream, streamUpstream:
		// Both close the client's connection. Source: Envoy, Context::closeStream.
		if c := v.conn(); c != nil {
			v.postpone(action{kind: actionDo, do: func() { _ = c.close(CloseLocal) }})
		}
		return StatusOK
	}
	return StatusBadArgument
}

// callClearRouteCache has nothing to clear: routing is the caller's, and comes after the headers.
func callClearRouteCache(*vm, []uint64) Status { return StatusOK }
