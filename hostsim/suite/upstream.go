package suite

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// madeCall is a request that the plugin made, over HTTP or gRPC.
type madeCall struct {
	worker            int
	cluster           string
	headers, trailers hostsim.Headers
	body              []byte
	// due is when the plugin hears of its end, on the monotonic clock; 0 for never.
	due   time.Duration
	heard bool // its end has been waited for
}

// String is how lists of requests show one.
func (c *madeCall) String() string {
	s := c.cluster + ": " + c.headers.Value(":method") + " " + c.headers.Value(":authority") + c.headers.Value(":path")
	for _, kv := range c.headers {
		if !strings.HasPrefix(kv[0], ":") {
			s += "\n  " + kv[0] + ": " + kv[1]
		}
	}
	if len(c.body) > 0 {
		s += "\n  body " + strconv.Quote(short(string(c.body)))
	}
	return s
}

// upstream is a cluster with how often each of its answers was given.
type upstream struct {
	*cluster
	given []int
}

func newUpstreams(clusters map[string]*cluster) map[string]*upstream {
	out := map[string]*upstream{}
	for name, c := range clusters {
		out[name] = &upstream{c, make([]int, len(c.answers))}
	}
	return out
}

// unreachable is what Envoy answers in place of an upstream that takes no connection.
var unreachable = hostsim.HTTPResponse{
	Headers: hostsim.Headers{{":status", "503"}, {"content-length", "91"}, {"content-type", "text/plain"}},
	Body:    []byte("upstream connect error or disconnect/reset before headers. reset reason: connection failure"),
}

// The values of answer.failure, in the order of answerFailures.
const (
	failureUnreachable = iota
	failureReset
	failureNone
)

// httpCall is hostsim.Config.HTTPCall.
func (p *plugin) httpCall(c *hostsim.HTTPCall) bool {
	made := &madeCall{worker: c.Worker, cluster: c.Cluster, headers: c.Headers, trailers: c.Trailers, body: c.Body}
	a, known := p.answer(made, c.Timeout)
	if a != nil {
		c.Respond(a.http())
	}
	return known
}

// grpcCall is hostsim.Config.GRPCCall. The messages that the plugin sends on a stream make up its body.
func (p *plugin) grpcCall(c *hostsim.GRPCCall) bool {
	made := &madeCall{worker: c.Worker, cluster: c.Cluster, body: c.Request}
	made.headers = append(hostsim.Headers{{":method", "POST"}, {":path", "/" + c.Service + "/" + c.Method}}, c.Metadata...)
	c.OnSend = func(message []byte, _ bool) { made.body = append(made.body, message...) }
	a, known := p.answer(made, c.Timeout)
	if a != nil {
		c.Respond(a.grpc())
	}
	return known
}

// answer notes a request and finds what comes back: nil for nothing. known says whether there is such a cluster. A canary
// hears no answer, and uses none up.
func (p *plugin) answer(c *madeCall, timeout time.Duration) (a *answer, known bool) {
	u := p.clusters[c.cluster]
	if u == nil || c.worker == hostsim.Canary {
		return nil, u != nil
	}
	p.calls = append(p.calls, c)
	now := p.clock.Monotonic()
	if timeout > 0 {
		c.due = now + timeout
	}
	switch a = u.find(c); {
	case a == nil:
		p.unasked = append(p.unasked, c.String())
		return nil, true
	case a.failure == failureNone:
		return nil, true
	}
	if due := now + a.after; c.due == 0 || due < c.due {
		c.due = due
	}
	return a, true
}

// find returns the first answer that is for c and not used up.
func (u *upstream) find(c *madeCall) *answer {
	for i, a := range u.answers {
		if a.times > 0 && u.given[i] >= a.times || a.when != nil && !a.when.fits(c) {
			continue
		}
		u.given[i]++
		return a
	}
	return nil
}

func (a *answer) http() hostsim.HTTPResponse {
	r := hostsim.HTTPResponse{After: a.after}
	switch a.failure {
	case failureReset:
	case failureUnreachable:
		r.Headers, r.Body = unreachable.Headers, unreachable.Body
	default:
		r.Headers, r.Trailers = a.all(), a.trailers
		r.Body = bytes.Join(a.body.chunks(), nil)
	}
	return r
}

// grpc takes the chunks of the body for messages.
func (a *answer) grpc() hostsim.GRPCResponse {
	r := hostsim.GRPCResponse{After: a.after, Reset: a.failure >= 0}
	if !r.Reset {
		r.Metadata, r.Messages, r.Trailers = a.headers, a.body.chunks(), a.trailers
		r.Status, r.StatusMessage = uint32(a.grpcStatus), a.grpcMessage
	}
	return r
}

// bodyValues makes an empty body absent.
func bodyValues(body []byte) []string {
	if len(body) == 0 {
		return nil
	}
	return []string{string(body)}
}
