package hosttest

import (
	"errors"
	"strconv"

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
	// End is how the stream ends after all parts. The zero value is a normal end.
	End hostsim.EndReason
}

// Response is what upstream answers. The zero value is 200 without a body.
type Response struct {
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
// fails the test unless Options.AllowTraps is set.
func (h *Host) Do(worker int, r Request) Result {
	h.t.Helper()
	x := exchange.New(h.Worker(worker).NewStream())
	r.deliver(x)
	hangs, reason := !x.Over() && !x.Messages[exchange.Response].Complete, r.End
	if hangs && reason == hostsim.EndNormal {
		reason = hostsim.EndClientGone
	}
	x.End(reason)
	if err := x.Err; err != nil && !(h.options.AllowTraps && errors.Is(err, hostsim.ErrTrap)) {
		h.t.Errorf("hosttest: request %s on worker %d: %v", r.Path, worker, err)
	}
	return result(x, hangs)
}

// deliver sends the request, and the response when the whole request has gone on.
func (r *Request) deliver(x *exchange.Exchange) {
	if r.Cluster != "" {
		x.Stream().SetProperty("xds.cluster_name", []byte(r.Cluster))
	}
	for path, value := range r.Properties {
		x.Stream().SetProperty(path, []byte(value))
	}
	chunks := chunksOf(r.Body, r.Chunks)
	message(x, exchange.Request, r.headers(len(chunks) > 0), chunks, r.Trailers)
	if x.Over() || !x.Messages[exchange.Request].Complete {
		return
	}
	if r.Upstream != "" {
		x.Stream().SetProperty("upstream.address", []byte(r.Upstream))
	}
	message(x, exchange.Response, r.Response.headers(), chunksOf(r.Response.Body, r.Response.Chunks), r.Response.Trailers)
}

// message delivers one direction, as far as the stream takes it, and what is due on its worker while the plugin holds it.
func message(x *exchange.Exchange, d exchange.Direction, headers hostsim.Headers, chunks []string, trailers hostsim.Headers) {
	x.Headers(d, headers, len(chunks) == 0 && trailers == nil)
	for i := 0; i < len(chunks) && !x.Over(); i++ {
		x.Body(d, []byte(chunks[i]), i == len(chunks)-1 && trailers == nil)
	}
	if trailers != nil && !x.Over() {
		x.Trailers(d, trailers)
	}
	for !x.Over() && !x.Messages[d].Complete && x.Stream().Worker().RunDue() {
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
	status := r.Status
	if status == 0 {
		status = 200
	}
	return append(hostsim.Headers{{":status", strconv.Itoa(status)}}, r.Headers...)
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
