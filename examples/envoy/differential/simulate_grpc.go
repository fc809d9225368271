package differential

import (
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// grpcCall takes a gRPC call-out of the plugin.
func (s *simulation) grpcCall(c *hostsim.GRPCCall) bool {
	if !s.e.speaksGRPC() || c.Cluster != s.e.cluster("other") {
		return c.Cluster == s.e.cluster("upstream")
	}
	s.grpc, s.grpcRes = c, hostsim.GRPCResponse{}
	s.t.wire("other", showHeaders("POST /"+c.Service+"/"+c.Method, withoutTransport(c.Metadata)))
	c.OnClose = func(cancelled bool) {
		if cancelled {
			s.t.wire("other", "closed")
		} else {
			s.t.wire("other", "end")
		}
	}
	if c.Stream {
		c.OnSend = s.hearGRPC
	} else {
		s.hearGRPC(c.Request, true)
	}
	return true
}

func (s *simulation) hearGRPC(message []byte, end bool) {
	s.t.wire("other", "message "+string(message))
	if end {
		s.t.wire("other", "end")
	}
}

// otherGRPC plays a step of the gRPC server. A unary call hears of its answer once it is whole.
func (s *simulation) otherGRPC(a act) {
	r := &s.grpcRes
	switch a.verb {
	case "headers":
		r.Metadata = append(hostsim.Headers{{":status", a.method}, {"content-type", "application/grpc"}}, a.headers...)
		r.Metadata.Add("x-envoy-upstream-service-time", "")
		if a.end {
			r.Metadata, r.Trailers = nil, r.Metadata
		}
	case "data":
		r.Messages = append(r.Messages, a.data)
	case "trailers":
		r.Trailers = a.headers
	case "reset":
		r.Reset = true
	}
	r.Open = !a.end && a.verb != "trailers" && !r.Reset
	if status, err := strconv.Atoi(r.Trailers.Value("grpc-status")); err == nil {
		r.Status, r.StatusMessage = uint32(status), r.Trailers.Value("grpc-message")
	}
	if !r.Open || s.grpc.Stream {
		s.grpc.Respond(*r)
		*r = hostsim.GRPCResponse{}
	}
}
