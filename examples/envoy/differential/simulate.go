package differential

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// simulation is hostsim with what a gateway does around it: connections, routes and upstreams of HTTP/1.1.
type simulation struct {
	e       *Exchange
	profile string
	t       *transcript
	host    *hostsim.Host
	stream  *hostsim.Stream // the client's last one

	bodyless  bool // the request had no body when it came
	left      int  // of its body, where its length is known; else -1
	asked     bool // the upstream has got the request's headers and owes the response, or its end
	forwarded bool // the upstream has got the request's headers
	sent      bool // and its end
	answering bool // the client has got the response's headers
	answered  bool // and its end

	asking time.Duration // when the request came

	call *hostsim.HTTPCall // the one that {other} got last
	res  hostsim.HTTPResponse
}

// Simulate plays an exchange in hostsim and returns what it caused.
func Simulate(ctx context.Context, wasm []byte, profile hostsim.Profile, e *Exchange) (got []Step, err error) {
	s := &simulation{e: e, profile: profile.Name, t: newTranscript(e.cluster("upstream"), "{upstream}", e.cluster("other"), "{other}")}
	config, err := s.config(wasm, profile)
	if err != nil {
		return nil, err
	}
	s.host, err = hostsim.New(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.ID(), err)
	}
	defer s.host.Close()
	for i, step := range e.Steps {
		a, err := parseAct(step.Do)
		if err != nil {
			return nil, err
		}
		if i == 0 && a.actor != "start" {
			s.t.next()
		}
		if err := s.perform(a); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", e.ID(), step.Do, err)
		}
		got = append(got, Step{step.Do, s.t.caused()})
		s.t.next()
	}
	return got, nil
}

func (s *simulation) config(wasm []byte, profile hostsim.Profile) (hostsim.Config, error) {
	e := s.e
	c := hostsim.Config{
		Wasm: wasm, Profile: profile, PluginConfig: []byte(e.script()), VMConfig: []byte(e.Config["vm_config"]),
		VMID: "shared", RootID: e.ID(), Name: "probe", LogLevel: hostsim.LogDebug, HTTPCall: s.httpCall,
		Log: func(l hostsim.LogEntry) {
			if l.Worker >= 0 && !strings.HasPrefix(l.Message, "hostsim: ") {
				s.t.plugin("", l.Message)
			}
		},
	}
	_, c.AllowOnHeadersStopIteration = e.Config["allow_on_headers_stop_iteration"]
	if limit := e.Config["buffer_limit"]; limit != "" {
		var err error
		if c.BufferLimit, err = strconv.Atoi(limit); err != nil {
			return c, err
		}
	}
	switch p := e.Config["failure_policy"]; p {
	case "", "FAIL_CLOSED":
	case "FAIL_OPEN":
		c.FailurePolicy = hostsim.FailOpen
	case "FAIL_RELOAD":
		c.FailurePolicy = hostsim.FailReload
	default:
		return c, fmt.Errorf("%w: failure_policy %s", ErrFormat, p)
	}
	return c, nil
}

func (s *simulation) perform(a act) error {
	switch a.actor {
	case "client":
		return s.client(a)
	case "upstream":
		return s.upstream(a)
	case "other":
		s.other(a)
	case "time":
		s.host.Advance(a.span)
		s.timeOut()
	}
	s.catchUp()
	return nil
}

// client plays a step of the client.
func (s *simulation) client(a act) (err error) {
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
		step, err = s.stream.RequestHeaders(h, a.end)
	case "data":
		step, err = s.stream.RequestBody(a.data, false)
		if s.left -= len(a.data); s.left == 0 {
			s.request(step)
			step, err = s.stream.RequestBody(nil, true)
		}
	case "end":
		step, err = s.stream.RequestBody(nil, true)
	case "trailers":
		step, err = s.stream.RequestTrailers(a.headers)
	case "close", "reset":
		if s.asked && !s.answered {
			s.t.wire("upstream", "closed")
		}
		s.answered = true
		return s.stream.End(hostsim.EndClientGone)
	}
	s.request(step)
	s.catchUp()
	return trapped(err)
}

// trapped drops the error of a crash, which is part of an exchange.
func trapped(error) error { return nil }

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

// refusal is what Envoy says where nobody listens. Later ones keep the transport's words to themselves.
var refusal = map[string]string{
	"envoy-1.36": resetText + "remote connection failure, transport failure reason: delayed connect error: Connection refused",
	"envoy-1.40": resetText + "remote connection failure",
}

const resetText = "upstream connect error or disconnect/reset before headers. reset reason: "

func (s *simulation) now() time.Duration { return s.host.Now().Sub(hostsim.VirtualEpoch) }

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

// upstream plays a step of the upstream.
func (s *simulation) upstream(a act) (err error) {
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
		step, err = s.stream.ResponseHeaders(h, a.end)
	case "data":
		step, err = s.stream.ResponseBody(a.data, false)
	case "end":
		step, err = s.stream.ResponseBody(nil, true)
	case "trailers":
		step, err = s.stream.ResponseTrailers(a.headers)
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
	s.catchUp()
	return trapped(err)
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

// catchUp passes on what has become free by other ways than the step itself.
func (s *simulation) catchUp() {
	if s.stream != nil && !s.answered {
		s.request(s.stream.RequestReady())
	}
	if s.stream != nil && !s.answered {
		s.response(s.stream.ResponseReady())
	}
}

// httpCall takes a call-out of the plugin.
func (s *simulation) httpCall(c *hostsim.HTTPCall) bool {
	switch c.Cluster {
	case s.e.cluster("upstream"):
		return true
	case s.e.cluster("other"):
	default:
		return false
	}
	s.call, s.res = c, hostsim.HTTPResponse{}
	s.t.wire("other", showHeaders(c.Headers.Value(":method")+" "+c.Headers.Value(":path"), regular(c.Headers)))
	if len(c.Body) > 0 {
		s.t.body("other", c.Body)
	}
	s.t.wire("other", strings.TrimSpace("end"+showHeaders("", c.Trailers)))
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
	case "data":
		s.res.Body = append(s.res.Body, a.data...)
	case "trailers":
		s.res.Trailers, end = a.headers, true
	case "end":
		end = true
	case "close", "reset":
		s.res, end = hostsim.HTTPResponse{}, true
	}
	if end {
		s.call.Respond(s.res)
		s.host.Advance(0)
	}
}
