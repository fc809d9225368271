package differential

import (
	"strconv"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// refusal is what Envoy says where nobody listens. Later ones keep the transport's words to themselves.
var refusal = map[string]string{
	"envoy-1.36": resetText + "remote connection failure, transport failure reason: delayed connect error: Connection refused",
	"envoy-1.40": resetText + "remote connection failure",
}

const resetText = "upstream connect error or disconnect/reset before headers. reset reason: "

// timeOut ends a request that has taken longer than its route allows.
func (s *simulation) timeOut() {
	limit, err := time.ParseDuration(s.e.Config["timeout"])
	if err != nil || s.answered || s.now()-s.asking < limit {
		return
	}
	s.t.wire("upstream", "closed")
	s.asked = false
	s.tell("response_timeout", 4)
	if s.stream.Headers(hostsim.MapResponseHeaders) == nil {
		s.gatewayReply(504, "upstream request timeout")
		return
	}
	s.t.wire("client", "closed")
	s.answered = true
	_ = s.stream.End(hostsim.EndTimeout)
}

// tell sets what the plugin reads about the end of the stream.
func (s *simulation) tell(details string, flags int64) {
	s.stream.SetProperty("response.code_details", []byte(details))
	s.stream.SetProperty("response.flags", hostsim.PropertyInt(flags))
}

// ending acts on a step that ends the stream.
func (s *simulation) ending(step hostsim.Step) {
	if s.answered {
		return
	}
	switch step.Flow {
	case hostsim.Reply:
		r := s.stream.LocalReply()
		h := regular(r.Headers)
		if _, sized := h.Get("content-length"); !sized && r.Status != 204 {
			h.Add("content-length", strconv.Itoa(len(r.Body)))
		}
		s.t.wire("client", showHeaders(strconv.Itoa(r.Status), h))
		if len(r.Body) > 0 {
			s.t.body("client", r.Body)
		}
		s.t.wire("client", "end")
		s.finish(hostsim.EndNormal)
	case hostsim.Reset:
		s.t.wire("client", "closed")
		s.finish(hostsim.EndNormal)
	}
}

// finish ends the stream on both sides.
func (s *simulation) finish(reason hostsim.EndReason) {
	if s.asked || s.forwarded && !s.sent {
		s.t.wire("upstream", "closed")
	}
	s.answered = true
	_ = s.stream.End(reason)
}

// gatewayReply is an answer that the gateway itself gives in place of an upstream.
func (s *simulation) gatewayReply(status int, body string) {
	s.asked = false
	h := hostsim.Headers{{":status", strconv.Itoa(status)}}
	if body != "" {
		h = append(h, [2]string{"content-length", strconv.Itoa(len(body))}, [2]string{"content-type", "text/plain"})
	}
	step, _ := s.stream.ResponseHeaders(h, body == "")
	s.response(step)
	if !s.answered && body != "" {
		step, _ = s.stream.ResponseBody([]byte(body), true)
		s.response(step)
	}
}
