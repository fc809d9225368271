package etcd

import (
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// HTTPCall answers a plugin's call, at the server's own time, and reports true: it is a hostsim.Config's HTTPCall for a
// plugin whose only cluster is etcd. A call that gets no answer times out, if it has a timeout.
func (s *Server) HTTPCall(c *hostsim.HTTPCall) bool {
	a := s.answer(c.Headers.Value(":method"), c.Headers.Value(":path"), c.Headers, c.Body)
	if a.status != 0 {
		c.Respond(hostsim.HTTPResponse{Headers: a.headers(), Body: a.body, After: a.after})
	}
	return true
}

// HTTPCalls is HTTPCall for a host with this clock: the server's moves on to it before each call.
func (s *Server) HTTPCalls(clock hostsim.Clock) func(*hostsim.HTTPCall) bool {
	return func(c *hostsim.HTTPCall) bool {
		s.AdvanceTo(clock.Monotonic())
		return s.HTTPCall(c)
	}
}

func (a *answer) headers() hostsim.Headers {
	kind := "application/json"
	if a.plain {
		kind = "text/plain"
	}
	return hostsim.Headers{
		{":status", strconv.Itoa(a.status)}, {"content-type", kind}, {"content-length", strconv.Itoa(len(a.body))},
	}
}
