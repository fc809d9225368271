package differential

import (
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// httpCall takes a call-out of the plugin.
func (s *simulation) httpCall(c *hostsim.HTTPCall) bool {
	switch c.Cluster {
	case s.e.cluster("upstream"):
		return true
	case s.e.cluster("other"):
	default:
		return false
	}
	s.call, s.called, s.res, s.answeringCall = c, s.now(), hostsim.HTTPResponse{}, false
	h := regular(c.Headers)
	if len(c.Body) > 0 {
		h.Add("content-length", strconv.Itoa(len(c.Body)))
	}
	s.t.wire("other", showHeaders(c.Headers.Value(":method")+" "+c.Headers.Value(":path"), h))
	if len(c.Body) > 0 {
		s.t.body("other", c.Body)
	}
	s.t.wire("other", "end") // HTTP/1.1 with a content-length has no place for trailers
	return true
}

// other plays a step of the cluster that call-outs go to.
func (s *simulation) other(a act) {
	end := a.end
	switch a.verb {
	case "headers":
		s.res.Headers.Add(":status", a.method)
		for _, kv := range a.headers {
			s.res.Headers.Add(kv[0], kv[1])
		}
		s.res.Headers = framed(s.res.Headers, a)
		s.res.Headers.Add("x-envoy-upstream-service-time", "")
	case "data":
		s.res.Body = append(s.res.Body, a.data...)
	case "trailers":
		s.res.Trailers, end = a.headers, true
	case "end":
		end = true
	case "close", "reset":
		end = true
		if s.res = (hostsim.HTTPResponse{}); !s.answeringCall {
			s.res.Body = []byte(resetText + "connection termination")
			s.res.Headers = hostsim.Headers{{":status", "503"}, {"content-length", strconv.Itoa(len(s.res.Body))}, {"content-type", "text/plain"}}
		}
	}
	s.answeringCall = true
	if end {
		s.call.Respond(s.res)
		s.call = nil
	}
}
