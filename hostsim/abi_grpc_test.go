package hostsim

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// upstreams is a dispatcher that knows the cluster "grpc" and keeps what it is asked and told.
type upstreams struct {
	calls []*GRPCCall
	told  []string
}

func (u *upstreams) use(config *Config) {
	config.GRPCCall = func(c *GRPCCall) bool {
		if c.Cluster != "grpc" {
			return false
		}
		if c.Worker == 0 { // the main thread's and the canary's are not these tests'
			u.calls = append(u.calls, c)
			c.OnSend = func(m []byte, end bool) {
				u.told = append(u.told, "send "+string(m)+map[bool]string{true: " end"}[end])
			}
			c.OnClose = func(cancelled bool) {
				u.told = append(u.told, map[bool]string{true: "cancel", false: "close"}[cancelled])
			}
		}
		return true
	}
}

func (u *upstreams) last() *GRPCCall { return u.calls[len(u.calls)-1] }

// heardUpstream compares what upstream has been told since the last call.
func (u *upstreams) heardUpstream(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(u.told, want) {
		t.Errorf("upstream was told %q, want %q", u.told, want)
	}
	u.told = nil
}

const showGRPC = `
	grpc_receive_initial_metadata pairs 4
	grpc_receive_initial_metadata pairs 5
	grpc_receive buf 5 0 100
	grpc_receive_trailing_metadata pairs 5
	grpc_receive_trailing_metadata pairs 4
	grpc_close status`

// Ids, refusals and texts of this and the next tests as seen on Envoy 1.36.4 and 1.40.0.
func TestGRPCCall(t *testing.T) {
	var u upstreams
	p := newProbe(t, `
		request_headers grpccall grpc s.S m the%body 1000 X-A=b
		request_headers buf 5 0 9
		grpc_receive bufset 5 0 0 more-
		grpc_receive get 4 x-a
		grpc_receive grpccancel 5
		tick status
		grpc_receive status`+showGRPC, u.use)
	p.pass()
	p.results("grpccall grpc s.S m the%body 1000 X-A=b = 0 5\nbuf 5 0 9 = 0")
	c := u.last()
	if c.Service != "s.S" || c.Method != "m" || string(c.Request) != "the body" || c.Timeout != time.Second || c.Stream ||
		!reflect.DeepEqual(c.Metadata, Headers{{"x-a", "b"}}) {
		t.Errorf("call %+v", c)
	}
	c.Respond(GRPCResponse{Messages: [][]byte{[]byte("text"), []byte("lost")}, After: time.Millisecond})
	c.Respond(GRPCResponse{Status: 3}) // the second answer does not count
	p.Advance(time.Millisecond - 1)
	p.expect("")
	p.Advance(1)
	p.expect(`> grpc_receive 1 5 4
		bufset 5 0 0 more- = 0
		get 4 x-a = 2
		grpccancel 5 = 0
		status = 0 0
		buf 5 0 100 = 0 more-text`)
	p.Advance(time.Hour)
	p.expect("")
	u.heardUpstream(t)
}

func TestGRPCCallFailures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer *GRPCResponse
		want   string
	}{
		{"an error", &GRPCResponse{Status: 7, StatusMessage: "no", Trailers: Headers{{"a", "b"}}}, "7\nstatus = 0 7 no{via_upstream}"},
		{"an error without text", &GRPCResponse{Status: 5}, "5\nstatus = 0 5 via_upstream"},
		{"success without a message", &GRPCResponse{}, "13\nstatus = 0 13"},
		{"a reset", &GRPCResponse{Reset: true}, "14\nstatus = 0 14 " + resetMessage + "{upstream_reset_before_response_started{remote_reset}}"},
		{"a timeout", nil, "14\nstatus = 0 14 upstream request timeout{response_timeout}"},
	} {
		var u upstreams
		p := newProbe(t, "request_headers grpccall grpc s.S m x 1000\nresponse_headers status"+showGRPC, u.use)
		p.pass()
		p.heard()
		if tt.answer != nil {
			u.last().Respond(*tt.answer)
		} else {
			u.last().Respond(GRPCResponse{Messages: [][]byte{nil}, After: time.Second + 1})
		}
		p.Advance(2 * time.Second)
		p.expect("> grpc_close 1 5 " + tt.want)
		u.heardUpstream(t, map[bool][]string{true: {"cancel"}}[tt.answer == nil]...)
		p.pass()
		p.results("grpccall grpc s.S m x 1000 = 0 9\n" + tt.want[strings.Index(tt.want, "status"):][:len("status = 0 ")] + strings.Fields(tt.want)[0])
	}
}

func TestGRPCRefusals(t *testing.T) {
	var u upstreams
	p := newProbe(t, `
		request_headers grpccall nobody s.S m x 0
		request_headers grpcstream nobody s.S m
		request_headers grpccall authority s.S m x 0
		request_headers grpccall ~ s.S m x 0
		request_headers grpcsend 4 x 0
		request_headers grpcsend 5 x 0
		request_headers grpcsend 6 x 0
		request_headers grpccancel 4
		request_headers grpccancel 7
		request_headers grpccancel 5
		request_headers grpccancel 6
		request_headers grpcclose 0
		request_headers grpcclose 5
		request_headers grpcclose 6`, u.use)
	p.pass()
	p.results(`grpccall nobody s.S m x 0 = 4
		grpcstream nobody s.S m = 4
		grpccall authority s.S m x 0 = 2
		grpccall ~ s.S m x 0 = 2
		grpcsend 4 x 0 = 2
		grpcsend 5 x 0 = 2
		grpcsend 6 x 0 = 1
		grpccancel 4 = 2
		grpccancel 7 = 2
		grpccancel 5 = 1
		grpccancel 6 = 1
		grpcclose 0 = 2
		grpcclose 5 = 1
		grpcclose 6 = 1`)
	none := newProbe(t, "request_headers grpccall grpc s.S m x 0")
	none.pass()
	none.results("grpccall grpc s.S m x 0 = 4")
}

func TestGRPCStream(t *testing.T) {
	var u upstreams
	p := newProbe(t, `
		request_headers grpcstream grpc s.S m x-a=b
		request_headers grpcsend 6 one 0
		request_trailers grpcsend 6 two 1
		request_trailers grpcsend 6 lost 0
		response_headers grpcclose 6
		response_headers grpcclose 6
		grpc_close grpcsend 6 x 0
		grpc_close grpcclose 6
		grpc_close grpcclose 6`+showGRPC, u.use)
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, false)
	ok(t, err)
	p.results("grpcstream grpc s.S m x-a=b = 0 6\ngrpcsend 6 one 0 = 0")
	c := u.last()
	if !c.Stream || c.Request != nil {
		t.Errorf("call %+v", c)
	}
	u.heardUpstream(t, "send one")
	c.Respond(GRPCResponse{Metadata: Headers{{"A", "b"}}, Messages: [][]byte{[]byte("first"), nil}, Open: true})
	p.Advance(0)
	p.expect(`> grpc_receive_initial_metadata 1 6 3
		pairs 4 = 0 :status=200, a=b, content-type=application/grpc
		pairs 5 = 0
		> grpc_receive 1 6 5
		buf 5 0 100 = 0 first
		> grpc_receive 1 6 0
		buf 5 0 100 = 0`)
	_, err = s.RequestTrailers(Headers{{"t", "u"}})
	ok(t, err)
	p.results("grpcsend 6 two 1 = 0\ngrpcsend 6 lost 0 = 0")
	u.heardUpstream(t, "send two end")
	c.Respond(GRPCResponse{Metadata: Headers{{"late", "x"}}, Trailers: Headers{{"t", "u"}}, StatusMessage: "fine"})
	c.Respond(GRPCResponse{Messages: [][]byte{nil}}) // too late
	p.Advance(0)
	p.expect(`> grpc_receive_trailing_metadata 1 6 3
		pairs 5 = 0 t=u, grpc-status=0, grpc-message=fine
		pairs 4 = 0
		> grpc_close 1 6 0
		grpcsend 6 x 0 = 0
		grpcclose 6 = 0
		grpcclose 6 = 1
		status = 0 0 fine{via_upstream}`)
	_, err = s.ResponseHeaders(reply, true)
	ok(t, err)
	p.results("grpcclose 6 = 1\ngrpcclose 6 = 1")
	u.heardUpstream(t)
}

// The plugin closes its side first: the answers still come, and the id lives until then.
func TestGRPCStreamClosedByThePlugin(t *testing.T) {
	var u upstreams
	p := newProbe(t, `
		request_headers grpcstream grpc s.S m
		request_headers grpcclose 6
		request_headers grpcclose 6
		request_headers grpcsend 6 lost 0
		response_headers grpccancel 6`+showGRPC, u.use)
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	p.results("grpcstream grpc s.S m = 0 6\ngrpcclose 6 = 0\ngrpcclose 6 = 0\ngrpcsend 6 lost 0 = 0")
	u.heardUpstream(t, "close")
	// Nothing but a status: trailers alone, as Envoy calls it.
	u.last().Respond(GRPCResponse{Status: 7})
	p.Advance(0)
	p.expect(`> grpc_receive_initial_metadata 1 6 0
		pairs 4 = 0
		pairs 5 = 0
		> grpc_receive_trailing_metadata 1 6 3
		pairs 5 = 0 :status=200, content-type=application/grpc, grpc-status=7
		pairs 4 = 0
		> grpc_close 1 6 7
		status = 0 7 via_upstream`)
	_, err = s.ResponseHeaders(reply, true)
	ok(t, err)
	p.results("grpccancel 6 = 1")
}

// What upstream sends after a cancel, or breaks off, or sends out of turn.
func TestGRPCStreamEnds(t *testing.T) {
	var u upstreams
	p := newProbe(t, `
		request_headers grpcstream grpc s.S m
		grpc_receive grpccancel 10
		grpc_receive grpcsend 10 x 0`+showGRPC, u.use)
	p.pass()
	p.heard()
	u.last().Respond(GRPCResponse{Open: true, After: time.Second})
	u.last().Respond(GRPCResponse{Reset: true, Open: true}) // does not overtake, and nothing follows it
	p.Advance(time.Second - 1)
	p.expect("")
	p.Advance(1)
	p.expect(`> grpc_receive_initial_metadata 1 6 2
		pairs 4 = 0 :status=200, content-type=application/grpc
		pairs 5 = 0
		> grpc_receive_trailing_metadata 1 6 0
		pairs 5 = 0
		pairs 4 = 0
		> grpc_close 1 6 13
		status = 0 13 upstream_reset_after_response_started{remote_reset}`)
	u.last().Respond(GRPCResponse{Messages: [][]byte{[]byte("late")}}) // though the plugin has not closed its side
	p.Advance(0)
	p.expect("")
	p.pass()
	p.heard()
	u.last().Respond(GRPCResponse{Messages: [][]byte{[]byte("a"), []byte("b")}})
	p.Advance(0)
	p.results(`pairs 4 = 0 :status=200, content-type=application/grpc
		pairs 5 = 0
		grpccancel 10 = 0
		grpcsend 10 x 0 = 1
		buf 5 0 100 = 0 a`)
	u.heardUpstream(t, "cancel")
}

// A call dies with its plugin context and with its virtual machine, and upstream hears of it.
func TestGRPCCallsDieWithTheirContext(t *testing.T) {
	var u upstreams
	p := newProbe(t, "request_headers grpcstream grpc s.S m\nrequest_headers when 2 panic boom", u.use)
	p.pass()
	ok(t, p.Reconfigure([]byte("request_headers grpccall grpc s.S m x 0\nrequest_headers when 2 panic boom")))
	p.Drain()
	u.heardUpstream(t, "cancel")
	if _, err := p.Worker(0).NewStream().RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
		t.Fatalf("err %v", err)
	}
	u.heardUpstream(t, "cancel")
	p.heard()
	for _, c := range u.calls {
		c.Respond(GRPCResponse{Messages: [][]byte{nil}})
	}
	p.Advance(time.Hour)
	p.expect("")
}

// A service message that names an unknown cluster fails later, by a callback with an id that the plugin never got.
func TestGRPCServiceMessage(t *testing.T) {
	var u upstreams
	message := func(cluster string) string { return strings.ReplaceAll(string(grpcServiceMessage(cluster)), "\n", "^") }
	p := newProbe(t, "request_headers grpccall "+message("nobody")+" s.S m x 0\nrequest_headers grpccall "+message("grpc")+" s.S m x 0"+showGRPC, u.use)
	p.pass()
	got := p.heard()
	for _, want := range []string{"s.S m x 0 = 10", "s.S m x 0 = 0 9", "> grpc_close 1 5 14\nstatus = 0 14 Cluster not available"} {
		if !strings.Contains(got, want) {
			t.Errorf("heard\n%s\nwithout %q", got, want)
		}
	}
}
