package hosttest

import (
	"errors"
	"strconv"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/exchange"
)

// Request is one request of a client, together with what upstream answers to it.
type Request struct {
	// Method is GET when empty, or POST when there is a body. Path is "/" and Authority "example.com" when empty.
	Method, Path, Authority string
	// Headers come after the pseudo headers.
	Headers hostsim.Headers
	// Body arrives in one chunk; Chunks instead says exactly how it is cut.
	Body   string
	Chunks []string
	// Trailers come last. Nil means none.
	Trailers hostsim.Headers
	// Properties are what the plugin reads by proxy_get_property on this stream, by path such as "source.address", as text.
	Properties map[string]string
	// Upstream is what the plugin reads as upstream.address once the response comes. Empty: the property is not there.
	Upstream string
	// Cluster is what the plugin reads as xds.cluster_name. Empty: the property is not there.
	Cluster string
	// Response is upstream's answer.
	Response Response
	// Target is the request header in which the plugin names hosts, first choice first, such as
	// x-gateway-destination-endpoint. Replicas, by address, are those that the cluster has and what each of them answers: the
	// gateway asks one after the other while RetryOn says so, and answers 503 where the list names none. The response then
	// has x-envoy-attempt-count, and upstream.address is the last host asked. Empty: Response answers.
	Target   string
	Replicas map[string]Response
	// RetryOn has names of Envoy's retry_on: connect-failure, reset, gateway-error, 5xx. Nil means connect-failure.
	RetryOn []string
	// Attempts bounds the hosts that are asked. Zero means 3.
	Attempts int
	// LeaveAt is when the client goes away. The zero value is not before the end.
	LeaveAt Phase
	// End is how the stream ends after all parts. The zero value is a normal end.
	End hostsim.EndReason
}

// Phase is a point in an exchange at which the client can leave, right after a part was delivered. A part that is not
// there counts as the one before it.
type Phase uint8

const (
	// PhaseRequestHeaders is after the request's headers, PhaseRequestBody after the first chunk of its body, which then
	// does not end the request.
	PhaseRequestHeaders Phase = iota + 1
	PhaseRequestBody
	// PhaseRequest is after the whole request: nothing has been answered yet.
	PhaseRequest
	// PhaseResponseHeaders is after the response's headers, PhaseResponseBody after the first chunk of its body, which
	// then does not end the response.
	PhaseResponseHeaders
	PhaseResponseBody
)

// Response is what upstream answers. The zero value is 200 without a body.
type Response struct {
	// Fault is what goes wrong instead of an answer. Empty: nothing; for a host that answers badly see Status.
	Fault UpstreamFault
	// After is how long the answer takes on the virtual clock; ticks that fall due meanwhile run. Zero means no time.
	After time.Duration
	// Status is 200 when 0.
	Status  int
	Headers hostsim.Headers
	// Body arrives in one chunk; Chunks instead says exactly how it is cut.
	Body   string
	Chunks []string
	// Trailers come last. Nil means none.
	Trailers hostsim.Headers
}

// Result is what became of a request.
type Result struct {
	// Request is what upstream got: headers with the plugin's changes, nil when nothing went upstream, and body.
	Request         hostsim.Headers
	RequestBody     string
	RequestTrailers hostsim.Headers
	// Response is what the client got, Status its code, or 0 when no response reached it.
	Response         hostsim.Headers
	ResponseBody     string
	ResponseTrailers hostsim.Headers
	Status           int
	// Local is the local reply, or nil when upstream answered.
	Local *hostsim.LocalReply
	// Hangs is true when the plugin paused the stream and did not let it go on by itself or when its own requests were
	// answered. What takes time does not happen within Do: for that take the steps of hostsim.Stream and Host.Advance.
	Hangs bool
	// Reset is true when the stream was cut.
	Reset bool
	// Err is the plugin's crash in the course of the request, or nil.
	Err error
}

// Do runs a request through all its callbacks on a worker: request, response, log, done, delete. A crash of the plugin
// fails the test unless Options.AllowTraps is set; a worker that is not there ends it.
func (h *Host) Do(worker int, r Request) Result {
	h.t.Helper()
	if worker < 0 || worker >= h.Workers() {
		h.t.Fatalf("hosttest: request on worker %d: there are %d, counted from 0; Options.Workers says how many", worker, h.Workers())
	}
	x := &exchangeOf{Exchange: exchange.New(h.Worker(worker).NewStream()), host: h.Host, request: &r}
	reason := r.End
	if cut := x.deliver(); cut != hostsim.EndNormal {
		reason = cut
	}
	hangs := reason == r.End && !x.Over() && !x.Messages[exchange.Response].Complete
	if hangs && reason == hostsim.EndNormal {
		reason = hostsim.EndClientGone
	}
	x.End(reason)
	if err := x.Err; err != nil && !(h.options.AllowTraps && errors.Is(err, hostsim.ErrTrap)) {
		h.t.Errorf("hosttest: request %q on worker %d: %v", r.Path, worker, err)
	}
	return result(x.Exchange, hangs)
}

// exchangeOf is one request on its way.
type exchangeOf struct {
	*exchange.Exchange
	host    *hostsim.Host
	request *Request
}

// deliver sends the request, and the response when the whole request has gone on. It says how the exchange was cut short,
// or EndNormal.
func (x *exchangeOf) deliver() hostsim.EndReason {
	r := x.request
	if r.Cluster != "" {
		x.property("xds.cluster_name", []byte(r.Cluster))
	}
	for path, value := range r.Properties {
		x.property(path, []byte(value))
	}
	chunks := chunksOf(r.Body, r.Chunks)
	x.message(exchange.Request, r.headers(len(chunks) > 0), chunks, r.Trailers, r.LeaveAt)
	switch {
	case x.Over():
		return hostsim.EndNormal
	case r.LeaveAt > 0 && r.LeaveAt <= PhaseRequest:
		return hostsim.EndClientGone
	case !x.Messages[exchange.Request].Complete:
		return hostsim.EndNormal
	}
	if r.Upstream != "" {
		x.property("upstream.address", []byte(r.Upstream))
	}
	return x.respond(x.answer())
}

// respond sends what upstream answers, or what the gateway answers in its place.
func (x *exchangeOf) respond(answer *Response) hostsim.EndReason {
	if x.Over() { // while the answer took its time
		return hostsim.EndNormal
	}
	last, cut := Phase(0), hostsim.EndNormal
	switch {
	case x.request.LeaveAt > 0:
		last, cut = x.request.LeaveAt, hostsim.EndClientGone
	case answer.Fault == ResetInResponse:
		last, cut = PhaseResponseBody, hostsim.EndUpstreamReset
	}
	answer = x.refuse(answer)
	x.message(exchange.Response, answer.headers(), chunksOf(answer.Body, answer.Chunks), answer.Trailers, last)
	if x.Over() {
		return hostsim.EndNormal
	}
	return cut
}

// message delivers one direction, as far as the stream takes it and not beyond last, and what is due on its worker while
// the plugin holds it.
func (x *exchangeOf) message(d exchange.Direction, headers hostsim.Headers, chunks []string, trailers hostsim.Headers, last Phase) {
	whole := len(chunks)
	switch {
	case last == PhaseRequestHeaders && d == exchange.Request, last == PhaseResponseHeaders && d == exchange.Response:
		chunks, trailers = nil, nil
	case last == PhaseRequestBody && d == exchange.Request, last == PhaseResponseBody && d == exchange.Response:
		chunks, trailers = chunks[:min(whole, 1)], nil
		whole++ // the end does not come
	}
	x.Headers(d, headers, whole == 0 && trailers == nil)
	for i := 0; i < len(chunks) && !x.Over(); i++ {
		x.Body(d, []byte(chunks[i]), i == whole-1 && trailers == nil)
	}
	if trailers != nil && !x.Over() {
		x.Trailers(d, trailers)
	}
	for n := x.host.Overruns(); !x.Over() && !x.Messages[d].Complete && x.host.Overruns() == n && x.Stream().Worker().RunDue(); {
		x.Poll()
	}
}

func result(x *exchange.Exchange, hangs bool) Result {
	request, response := x.Messages[exchange.Request], x.Messages[exchange.Response]
	r := Result{Request: request.Headers, RequestBody: string(request.Body), RequestTrailers: request.Trailers,
		Response: response.Headers, ResponseBody: string(response.Body), ResponseTrailers: response.Trailers,
		Local: x.Local, Hangs: hangs, Reset: x.Reset, Err: x.Err}
	if x.Local != nil {
		r.Response, r.ResponseBody = x.Local.Headers, string(x.Local.Body)
	}
	r.Status, _ = strconv.Atoi(r.Response.Value(":status"))
	return r
}

func (r *Request) headers(body bool) hostsim.Headers {
	method := r.Method
	if method == "" {
		method = "GET"
		if body {
			method = "POST"
		}
	}
	h := hostsim.Headers{{":method", method}, {":scheme", "http"}, {":authority", orElse(r.Authority, "example.com")},
		{":path", orElse(r.Path, "/")}}
	return append(h, r.Headers...)
}

func (r *Response) headers() hostsim.Headers {
	return append(hostsim.Headers{{":status", strconv.Itoa(r.status())}}, r.Headers...)
}

func (r *Response) status() int {
	if r.Status == 0 {
		return 200
	}
	return r.Status
}

func chunksOf(body string, chunks []string) []string {
	if chunks == nil && body != "" {
		return []string{body}
	}
	return chunks
}

func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
