package hostsim

import (
	"slices"
	"sync/atomic"
	"time"
)

// HTTPCall is a request that the plugin itself sends to an upstream cluster (proxy_http_call). Its fields are the
// caller's to read; only Respond is safe for concurrent use.
type HTTPCall struct {
	// Worker is the number of the calling worker, or MainThread, or Canary. A canary never hears an answer.
	Worker int
	// Cluster is the cluster's name.
	Cluster string
	// Headers has :method, :path and :authority among others, names in lower case.
	Headers Headers
	// Body is the request's body.
	Body []byte
	// Trailers are those of the request.
	Trailers Headers
	// Timeout is when the host gives up waiting, from the call on. Zero means never.
	Timeout time.Duration

	host     *Host
	id       uint32
	deadline time.Duration // monotonic; 0 for none
	answer   atomic.Pointer[dueResponse]
}

// HTTPResponse is the answer to an HTTPCall.
type HTTPResponse struct {
	// Headers has :status among others. Without any headers the plugin hears that the stream was reset: a callback with
	// no headers, no body and no trailers.
	Headers Headers
	// Body is the host's from Respond on.
	Body     []byte
	Trailers Headers
	// After is the time on the host's clock that the answer takes, from Respond on.
	After time.Duration
}

// dueResponse is a response and the monotonic time at which the plugin hears of it.
type dueResponse struct {
	HTTPResponse
	at time.Duration
}

// Respond answers the call. The plugin hears of it as of a tick: in Host.Advance or Host.RunTicks, at the answer's time
// on the host's clock, unless the call has timed out or its plugin context or virtual machine is gone by then. Only the
// first answer counts. It may be called from any goroutine, also while the call is being made.
func (c *HTTPCall) Respond(r HTTPResponse) {
	due := &dueResponse{HTTPResponse: r, at: c.host.clock.Monotonic() + max(r.After, 0)}
	due.Headers, due.Trailers = r.Headers.lowered(), r.Trailers.lowered()
	if c.answer.CompareAndSwap(nil, due) {
		c.host.wakeTicker()
	}
}

// due is what the plugin will hear next of the call, as things stand: nil while there is neither an answer nor a timeout.
func (c *HTTPCall) due() *dueResponse {
	due := c.answer.Load()
	if c.deadline != 0 && (due == nil || due.at > c.deadline) {
		return &dueResponse{HTTPResponse: timedOut, at: c.deadline}
	}
	return due
}

// timedOut is what Envoy answers in place of an upstream that is too slow. Source: seen on Envoy 1.36.4 and 1.40.0.
var timedOut = HTTPResponse{
	Headers: Headers{{":status", "504"}, {"content-length", "24"}, {"content-type", "text/plain"}},
	Body:    []byte("upstream request timeout"),
}

// callHTTPCall makes a call in the name of the plugin context, also where a stream's callback asks for it. Source:
// proxy-wasm specification 0.2.1, "HTTP calls"; the refusals and the order of checks are those of Envoy, Context::httpCall.
func callHTTPCall(v *vm, a []uint64) Status {
	cluster, ok1 := v.read(a[0], a[1])
	headers, ok2 := v.read(a[2], a[3])
	body, ok3 := v.read(a[4], a[5])
	trailers, ok4 := v.read(a[6], a[7])
	if !ok1 || !ok2 || !ok3 || !ok4 || !v.putU32(a[9], 0) {
		return StatusInvalidMemoryAccess
	}
	target, timeout := v.target(), int32(uint32(a[8]))
	if target == nil || timeout < 0 || v.host.config.HTTPCall == nil {
		return StatusBadArgument
	}
	c := &HTTPCall{
		Worker: v.worker, Cluster: string(cluster), Headers: MapRequestHeaders.normal(decodePairs(headers)), Body: slices.Clone(body),
		Trailers: decodePairs(trailers), Timeout: time.Duration(timeout) * time.Millisecond, host: v.host,
	}
	for _, name := range []string{":method", ":path", ":authority"} {
		if _, ok := c.Headers.Get(name); !ok {
			return StatusBadArgument
		}
	}
	if c.Timeout > 0 {
		c.deadline = v.host.clock.Monotonic() + c.Timeout
	}
	if !v.host.config.HTTPCall(c) {
		return StatusBadArgument
	}
	c.id = v.nextCallout(calloutHTTP)
	target.root.calls = append(target.root.calls, c)
	v.host.wakeTicker()
	v.putU32(a[9], c.id)
	return StatusOK
}

// calloutKind is a kind of call-out. The ids of each kind are 4 apart and tell the kind by their two low bits. Source:
// proxy-wasm-cpp-host, WasmBase::CalloutType.
type calloutKind uint32

const (
	calloutHTTP calloutKind = iota
	calloutGRPC
	calloutGRPCStream
	calloutKinds
)

func (v *vm) nextCallout(kind calloutKind) uint32 {
	v.lastCall[kind] += uint32(calloutKinds) + 1
	return v.lastCall[kind] | uint32(kind)
}

func kindOfCallout(id uint32) calloutKind { return calloutKind(id & uint32(calloutKinds)) }

// nextCall finds the call whose answer comes first, or nil; of several at one time the one that was made first.
func (v *vm) nextCall() (r *root, c *HTTPCall, due *dueResponse) {
	if v.dead != nil {
		return nil, nil, nil
	}
	for _, each := range v.roots {
		for _, call := range each.calls {
			if d := call.due(); d != nil && (due == nil || d.at < due.at) {
				r, c, due = each, call, d
			}
		}
	}
	return r, c, due
}

// deliverCall tells the plugin context of an answer, which it may read until the callback returns.
func (v *vm) deliverCall(r *root, c *HTTPCall, answer *HTTPResponse) {
	r.calls = slices.DeleteFunc(r.calls, func(x *HTTPCall) bool { return x == c })
	if v.httpCallResponse == nil {
		return
	}
	if len(answer.Headers) == 0 {
		answer = &HTTPResponse{}
		r.status, r.statusMessage = uint32(StatusBrokenConnection), "reset"
	} else {
		r.answer = answer
	}
	_, _ = v.callback(&r.guestContext, v.httpCallResponse, uint64(r.id), uint64(c.id), uint64(len(answer.Headers)),
		uint64(len(answer.Body)), uint64(len(answer.Trailers)))
	r.answer, r.statusMessage = nil, ""
	v.settle()
}
