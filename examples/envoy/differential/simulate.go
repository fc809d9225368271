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

	call   *hostsim.HTTPCall // the one that {other} got last
	called time.Duration     // when
	res    hostsim.HTTPResponse

	answeringCall bool // its answer has begun

	grpc    *hostsim.GRPCCall    // the gRPC call that {other} got last
	grpcRes hostsim.GRPCResponse // so far
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
		VMID: "shared", RootID: e.ID(), Name: "probe", LogLevel: hostsim.LogDebug, HTTPCall: s.httpCall, GRPCCall: s.grpcCall,
		Log: func(l hostsim.LogEntry) {
			if !strings.HasPrefix(l.Message, "hostsim: ") {
				e.log(s.t, l.Worker < 0, l.Message)
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
	var err error
	switch a.actor {
	case "client":
		err = s.client(a)
	case "upstream":
		err = s.upstream(a)
	case "other":
		if s.grpc != nil {
			s.otherGRPC(a)
		} else {
			s.other(a)
		}
	case "time":
		s.host.Advance(a.span)
		s.timeOut()
		if c := s.call; c != nil && c.Timeout > 0 && s.now()-s.called >= c.Timeout {
			s.t.wire("other", "closed")
			s.call = nil
		}
	}
	s.host.Advance(0) // messages in queues, answers to call-outs
	s.catchUp()
	return err
}

func (s *simulation) now() time.Duration { return s.host.Now().Sub(hostsim.VirtualEpoch) }

// catchUp passes on what has become free by other ways than the step itself.
func (s *simulation) catchUp() {
	if s.stream != nil && !s.answered {
		s.request(s.stream.RequestReady())
	}
	if s.stream != nil && !s.answered {
		s.response(s.stream.ResponseReady())
	}
}
