package hosttest

import (
	"errors"
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
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
	run := exchange{stream: h.Worker(worker).NewStream()}
	run.result.Err = run.all(r)
	reason := r.End
	if run.result.Hangs && reason == hostsim.EndNormal {
		reason = hostsim.EndClientGone
	}
	if err := run.stream.End(reason); err != nil && run.result.Err == nil {
		run.result.Err = err
	}
	if err := run.result.Err; err != nil && !(h.options.AllowTraps && errors.Is(err, hostsim.ErrTrap)) {
		h.t.Errorf("hosttest: request %s on worker %d: %v", r.Path, worker, err)
	}
	return run.result
}

// exchange is one request on its way.
type exchange struct {
	stream *hostsim.Stream
	result Result
	over   bool // answered, cut or hanging
}

func (x *exchange) all(r Request) error {
	if r.Cluster != "" {
		x.stream.SetProperty("xds.cluster_name", []byte(r.Cluster))
	}
	for path, value := range r.Properties {
		x.stream.SetProperty(path, []byte(value))
	}
	chunks := chunksOf(r.Body, r.Chunks)
	if err := x.message(true, r.headers(len(chunks) > 0), chunks, r.Trailers); err != nil || x.over {
		return err
	}
	if r.Upstream != "" {
		x.stream.SetProperty("upstream.address", []byte(r.Upstream))
	}
	return x.message(false, r.Response.headers(), chunksOf(r.Response.Body, r.Response.Chunks), r.Response.Trailers)
}

// message delivers one direction and collects what goes on.
func (x *exchange) message(request bool, headers hostsim.Headers, chunks []string, trailers hostsim.Headers) error {
	sendHeaders, sendBody, sendTrailers, ready := x.stream.RequestHeaders, x.stream.RequestBody, x.stream.RequestTrailers, x.stream.RequestReady
	if !request {
		sendHeaders, sendBody, sendTrailers, ready = x.stream.ResponseHeaders, x.stream.ResponseBody, x.stream.ResponseTrailers, x.stream.ResponseReady
	}
	step, err := sendHeaders(headers, len(chunks) == 0 && trailers == nil)
	complete := x.take(request, step)
	for i := 0; i < len(chunks) && err == nil && !x.over; i++ {
		step, err = sendBody([]byte(chunks[i]), i == len(chunks)-1 && trailers == nil)
		complete = x.take(request, step) || complete
	}
	if trailers != nil && err == nil && !x.over {
		step, err = sendTrailers(trailers)
		complete = x.take(request, step) || complete
	}
	if err == nil && !x.over && !complete {
		complete = x.take(request, ready())
	}
	for err == nil && !x.over && !complete && x.stream.Worker().RunDue() {
		complete = x.take(request, ready())
	}
	if !complete && !x.over && err == nil {
		x.result.Hangs, x.over = true, true
	}
	return err
}

// take notes what a step lets through and says whether the message is complete.
func (x *exchange) take(request bool, step hostsim.Step) bool {
	switch step.Flow {
	case hostsim.Reset:
		x.result.Reset, x.over = true, true
		return false
	case hostsim.Reply:
		local := x.stream.LocalReply()
		x.result.Local, x.over = local, true
		x.result.Status, x.result.Response, x.result.ResponseBody = local.Status, local.Headers, string(local.Body)
		return false
	}
	if request {
		if step.Headers {
			x.result.Request = x.stream.Headers(hostsim.MapRequestHeaders)
		}
		x.result.RequestBody += string(step.Data)
		if step.End {
			x.result.RequestTrailers = x.stream.Headers(hostsim.MapRequestTrailers)
		}
		return step.End
	}
	if step.Headers {
		x.result.Response = x.stream.Headers(hostsim.MapResponseHeaders)
		x.result.Status, _ = strconv.Atoi(x.result.Response.Value(":status"))
	}
	x.result.ResponseBody += string(step.Data)
	if step.End {
		x.result.ResponseTrailers = x.stream.Headers(hostsim.MapResponseTrailers)
	}
	return step.End
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
