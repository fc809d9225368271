package hostsim

import (
	"fmt"
	"strconv"
	"strings"
)

// LocalReply is a response that did not come from upstream.
type LocalReply struct {
	// Status is the HTTP status code.
	Status int
	// Headers is what the client sees, :status included, after the plugin's own response callbacks.
	Headers Headers
	// Body is what the client sees.
	Body []byte
	// Details says who answered and why, as in Envoy's response code details.
	Details string
	// GRPCStatus is the gRPC status that the plugin gave, 0 to 16, or -1 for none.
	GRPCStatus int32
}

// answer starts a local reply. Before a response has arrived it takes the response path through the plugin; once the
// response is under way it goes to the client as it is; after its headers have gone there is only the reset. Source:
// Envoy, FilterManager::sendLocalReply.
func (s *Stream) answer(r *LocalReply) {
	if s.over() || s.local != nil {
		return
	}
	switch {
	case s.response.headersOut:
		s.cut(r.Details)
	case s.response.hasHeaders || s.vm == nil || s.vm.dead != nil:
		s.local, s.localReady = r, true
		r.Headers = r.headers()
		r.shape(s.request.headers)
		s.response.headers, s.response.hasHeaders = r.Headers, true
	default:
		s.local = r
		s.local.Headers = r.headers()
		s.local.shape(s.request.headers)
		s.replyThroughPlugin()
	}
}

// headers completes what the plugin gave by what a gateway adds. Source: Envoy, Http::Utility::prepareLocalReply.
func (r *LocalReply) headers() Headers {
	h := Headers{{":status", strconv.Itoa(r.Status)}}
	for _, kv := range r.Headers {
		if kv[0] != ":status" {
			h = append(h, kv)
		}
	}
	if len(r.Body) == 0 {
		h.Del("content-length")
		return h
	}
	h.put("content-length", strconv.Itoa(len(r.Body)))
	if _, ok := h.Get("content-type"); !ok {
		h.Add("content-type", "text/plain")
	}
	return h
}

// shape makes the reply what the request asks for: a call of gRPC gets its status in the headers and no body, HEAD gets
// the headers alone. Source: as for headers; seen on Envoy 1.36.4 and 1.40.0.
func (r *LocalReply) shape(request Headers) {
	if kind := request.Value("content-type"); kind == "application/grpc" || strings.HasPrefix(kind, "application/grpc+") {
		if r.GRPCStatus < 0 {
			r.GRPCStatus = grpcStatusOf(r.Status)
		}
		r.Status = 200
		r.Headers.put(":status", "200")
		r.Headers.Del("content-length")
		r.Headers.put("content-type", "application/grpc")
		r.Headers.put("grpc-status", strconv.Itoa(int(r.GRPCStatus)))
		if len(r.Body) > 0 {
			r.Headers.put("grpc-message", percentEncoded(r.Body))
		}
		r.Body = nil
	}
	if request.Value(":method") == "HEAD" {
		r.Body = nil
	}
}

// grpcStatusOf maps an HTTP status to that of gRPC. Source: the mapping of gRPC, doc/http-grpc-status-mapping.md.
func grpcStatusOf(status int) int32 {
	switch status {
	case 400:
		return 13
	case 401:
		return 16
	case 403:
		return 7
	case 404:
		return 12
	case 429, 502, 503, 504:
		return 14
	}
	return 2
}

// percentEncoded writes a message as gRPC does: what is no printable ASCII, and the percent sign, as %XX.
func percentEncoded(b []byte) string {
	var out strings.Builder
	for _, c := range b {
		if c >= ' ' && c <= '~' && c != '%' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// replyThroughPlugin sends the local reply down the plugin's own response callbacks.
func (s *Stream) replyThroughPlugin() {
	d := &s.response
	d.headers, d.hasHeaders = s.local.Headers, true
	body := s.local.Body
	err := d.deliverHeaders(len(body) == 0)
	if err == nil && len(body) > 0 {
		err = d.deliverData(body, true)
	}
	if err != nil {
		s.fail()
	}
}

// finishReply completes the local reply once the plugin has let it through.
func (s *Stream) finishReply() {
	d := &s.response
	if s.local == nil || s.localReady || !d.endOut {
		return
	}
	s.localReady = true
	s.local.Headers, s.local.Body = d.headers, d.out.Data
	if status, err := strconv.Atoi(d.headers.Value(":status")); err == nil {
		s.local.Status = status
	}
	d.out = Step{}
	d.passed += len(s.local.Body)
}

// cut resets the stream.
func (s *Stream) cut(details string) {
	if s.over() {
		return
	}
	s.wasCut = true
	if s.details == "" {
		s.details = details
	}
}

// fail is the end of a stream whose virtual machine has died: 503 while that is still possible, else a reset. Source:
// Envoy, Context::failStream; seen with FAIL_CLOSED, FAIL_OPEN and FAIL_RELOAD alike.
func (s *Stream) fail() {
	if s.localReady || s.wasCut {
		return
	}
	const details = "wasm_fail_stream"
	if s.response.headersOut {
		s.cut(details)
		return
	}
	s.local = &LocalReply{Status: 503, Details: details, GRPCStatus: -1}
	s.local.Headers = s.local.headers()
	s.localReady = true
	s.response.headers, s.response.hasHeaders = s.local.Headers, true
}
