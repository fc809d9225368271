package differential

import (
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// client plays a step of the client.
func (s *simulation) client(a act) error {
	var step hostsim.Step
	switch a.verb {
	case "headers":
		s.stream = s.host.Worker(0).NewStream()
		s.forwarded = false
		s.asked, s.sent, s.answering, s.answered = false, false, false, false
		h := requestHeaders(a)
		if h.Value("expect") == "100-continue" {
			h.Del("expect")
			s.t.wire("client", "100")
		}
		s.bodyless, s.left = a.end, -1
		if n, err := strconv.Atoi(h.Value("content-length")); err == nil {
			s.left = n
		}
		s.asking = s.now()
		for path, value := range connectionProperties {
			s.stream.SetProperty(path, value)
		}
		s.stream.SetProperty("xds.cluster_name", []byte(s.e.cluster("upstream")))
		step, _ = s.stream.RequestHeaders(h, a.end)
	case "data":
		step, _ = s.stream.RequestBody(a.data, false)
		if s.left -= len(a.data); s.left == 0 {
			s.request(step)
			step, _ = s.stream.RequestBody(nil, true)
		}
	case "end":
		step, _ = s.stream.RequestBody(nil, true)
	case "trailers":
		step, _ = s.stream.RequestTrailers(a.headers)
	case "close", "reset":
		if s.asked && !s.answered {
			s.t.wire("upstream", "closed")
		}
		s.answered = true
		return s.stream.End(hostsim.EndClientGone)
	}
	s.request(step)
	return nil // a crash is part of an exchange
}

// connectionProperties are what Envoy answers of the connection and the route.
var connectionProperties = map[string][]byte{
	"request.protocol":                 []byte("HTTP/1.1"),
	"xds.route_name":                   []byte("route"),
	"connection.requested_server_name": {},
}

// requestHeaders are what Envoy's filters see of the client's headers.
func requestHeaders(a act) hostsim.Headers {
	h := hostsim.Headers{{":authority", "example.com"}, {":path", a.path}, {":method", a.method}, {":scheme", "http"}}
	for _, kv := range a.headers {
		h.Add(kv[0], kv[1])
	}
	h.Add("x-forwarded-proto", "http")
	return h
}

// request passes on what the plugin lets through of the request.
func (s *simulation) request(step hostsim.Step) {
	if step.Headers {
		if _, refused := s.e.Config["refused"]; refused {
			s.tell("upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}", 32)
			s.gatewayReply(503, refusal[s.profile])
			return
		}
		h := s.stream.Headers(hostsim.MapRequestHeaders)
		if s.unroutable(h) {
			return
		}
		if m := h.Value(":method"); s.bodyless && (m == "POST" || m == "PUT") {
			h.Add("content-length", "0")
		}
		s.asked, s.forwarded = true, true
		s.stream.SetProperty("upstream.request_attempt_count", hostsim.PropertyInt(1))
		s.t.wire("upstream", showHeaders(h.Value(":method")+" "+h.Value(":path"), regular(h)))
	}
	if len(step.Data) > 0 {
		s.t.body("upstream", step.Data)
	}
	if step.End {
		s.sent = true
		s.t.wire("upstream", strings.TrimSpace("end"+showHeaders("", s.stream.Headers(hostsim.MapRequestTrailers))))
	}
	s.ending(step)
}

// unroutable answers a request that Envoy's router does not forward.
func (s *simulation) unroutable(h hostsim.Headers) bool {
	_, path := h.Get(":path")
	_, scheme := h.Get("x-forwarded-proto")
	_, method := h.Get(":method")
	switch {
	case !path, !scheme: // no route fits a request without them
		s.gatewayReply(404, "")
	case !method:
		s.gatewayReply(503, "missing required header: :method")
	}
	return !path || !scheme || !method
}

// regular leaves out the pseudo headers that have a place of their own.
func regular(h hostsim.Headers) hostsim.Headers {
	var out hostsim.Headers
	for _, kv := range h {
		if !strings.HasPrefix(kv[0], ":") {
			out = append(out, kv)
		}
	}
	return out
}
