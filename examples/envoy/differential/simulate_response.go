package differential

import (
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// upstream plays a step of the upstream.
func (s *simulation) upstream(a act) error {
	if !s.asked {
		s.t.add("upstream", line{text: "upstream" + unasked})
		return nil
	}
	var step hostsim.Step
	switch a.verb {
	case "headers":
		h := hostsim.Headers{{":status", a.method}}
		for _, kv := range a.headers {
			h.Add(kv[0], kv[1])
		}
		h = framed(h, a)
		step, _ = s.stream.ResponseHeaders(h, a.end)
	case "data":
		step, _ = s.stream.ResponseBody(a.data, false)
	case "end":
		step, _ = s.stream.ResponseBody(nil, true)
	case "trailers":
		step, _ = s.stream.ResponseTrailers(a.headers)
	case "close", "reset":
		s.asked, s.forwarded = false, false
		if s.stream.Headers(hostsim.MapResponseHeaders) == nil {
			s.tell("upstream_reset_before_response_started{connection_termination}", 64)
			s.gatewayReply(503, resetText+"connection termination")
			return nil
		}
		if !s.answering { // what waits in the plugin is dropped, and what comes in its place goes past it
			const body = resetText + "protocol error"
			_ = s.stream.End(hostsim.EndUpstreamReset)
			s.t.wire("client", showHeaders("502", hostsim.Headers{{"content-length", strconv.Itoa(len(body))}, {"content-type", "text/plain"}}))
			s.t.body("client", []byte(body))
			s.t.wire("client", "end")
			s.answered = true
			return nil
		}
		s.t.wire("client", "closed")
		s.answered = true
		return s.stream.End(hostsim.EndUpstreamReset)
	}
	if a.end || a.verb == "end" || a.verb == "trailers" {
		s.asked = false
	}
	s.response(step)
	return nil // a crash is part of an exchange
}

// framed adds the header that the server sends, which shows in a response but not in a request: there Envoy drops it
// before the filters.
func framed(h hostsim.Headers, a act) hostsim.Headers {
	_, sized := h.Get("content-length")
	switch {
	case sized || a.method == "204":
	case a.end:
		h.Add("content-length", "0")
	default:
		h.Add("transfer-encoding", "chunked")
	}
	return h
}

// response passes on what the plugin lets through of the response.
func (s *simulation) response(step hostsim.Step) {
	if step.Headers {
		s.answering = true
		h := s.stream.Headers(hostsim.MapResponseHeaders)
		if _, ok := h.Get(":status"); !ok {
			const body = "missing required header: :status"
			h = hostsim.Headers{{":status", "502"}, {"content-length", strconv.Itoa(len(body))}, {"content-type", "text/plain"}}
			step.Data = []byte(body)
		}
		if _, sized := h.Get("content-length"); !sized && step.End && len(step.Data) == 0 && h.Value(":status") != "204" {
			h.Add("content-length", "0")
		}
		s.t.wire("client", showHeaders(h.Value(":status"), regular(h)))
	}
	if len(step.Data) > 0 {
		s.t.body("client", step.Data)
	}
	if step.End {
		s.t.wire("client", strings.TrimSpace("end"+showHeaders("", s.stream.Headers(hostsim.MapResponseTrailers))))
		s.finish(hostsim.EndNormal)
		return
	}
	s.ending(step)
}
