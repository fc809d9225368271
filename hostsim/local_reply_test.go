package hostsim

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// A local reply is given after the callback, whatever that answers, and comes down the plugin's own response path.
func TestLocalReply(t *testing.T) {
	for _, answer := range []string{"0", "1"} {
		p := newProbe(t, `
			request_headers reply 200 {"ok":true} content-type=application/json X-A=1
			request_headers get 0 :path
			request_headers return `+answer+`
			response_headers replace 2 x-seen yes
			response_body buf 1 0 99
			log prop response$code_details`)
		s := p.Worker(0).NewStream()
		step, err := s.RequestHeaders(get, false)
		ok(t, err)
		if step.Flow != Reply {
			t.Fatalf("flow %v", step.Flow)
		}
		if step, err := s.RequestBody([]byte("late"), true); err != nil || step.Flow != Reply {
			t.Errorf("body afterwards: %+v, %v", step, err)
		}
		ok(t, s.End(EndNormal))
		p.expect(`
			> context_create 2 1
			> request_headers 2 3 0
			reply 200 {"ok":true} content-type=application/json X-A=1 = 0
			get 0 :path = 0 /a?b=c
			> response_headers 2 4 0
			replace 2 x-seen yes = 0
			> response_body 2 11 1
			buf 1 0 99 = 0 {"ok":true}
			> log 2
			prop response$code_details = 0
			> done 2
			> delete 2`)
		r := s.LocalReply()
		want := Headers{{":status", "200"}, {"content-type", "application/json"}, {"x-a", "1"}, {"content-length", "11"}, {"x-seen", "yes"}}
		if r.Status != 200 || string(r.Body) != `{"ok":true}` || string(encodePairs(r.Headers)) != string(encodePairs(want)) || r.GRPCStatus != -1 {
			t.Errorf("reply %+v", r)
		}
	}
}

// A plugin without response callbacks can reply all the same.
func TestLocalReplyWithoutResponseCallbacks(t *testing.T) {
	m := minimal()
	m.imports = []wasmImport{{module: "env", name: "proxy_send_local_response", results: []api.ValueType{i32},
		params: []api.ValueType{i32, i32, i32, i32, i32, i32, i32, i32}}}
	m.funcs = append(m.funcs, wasmFunc{name: "proxy_on_request_headers", params: []api.ValueType{i32, i32, i32},
		results: []api.ValueType{i32}, body: []byte{0x41, 201, 1, 0x41, 0, 0x41, 0, 0x41, 0, 0x41, 4, 0x41, 0, 0x41, 0, 0x41, 5, 0x10, 0}})
	h, err := New(context.Background(), Config{Wasm: m.bytes()})
	ok(t, err)
	defer h.Close()
	s := h.Worker(0).NewStream()
	step, err := s.RequestHeaders(get, true)
	ok(t, err)
	if r := s.LocalReply(); step.Flow != Reply || r.Status != 201 || r.GRPCStatus != 5 || len(r.Body) != 4 {
		t.Errorf("flow %v, reply %+v", step.Flow, r)
	}
}

func TestLocalReplyWithoutBody(t *testing.T) {
	p := newProbe(t, "request_headers reply 204 ~ :status=500 content-length=99")
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	r := s.LocalReply()
	if r == nil || r.Status != 204 || len(r.Headers) != 1 || len(r.Body) != 0 {
		t.Errorf("reply %+v", r)
	}
}

// The plugin may change its own reply, and may hold it back.
func TestLocalReplyChangedAndPaused(t *testing.T) {
	p := newProbe(t, `
		configure tickevery 1000
		request_headers reply 200 body
		response_headers replace 2 :status 202
		response_headers return 1
		response_body bufset 1 0 99 other
		tick effective 2
		tick continue 1`)
	s := p.Worker(0).NewStream()
	step, err := s.RequestHeaders(get, false)
	ok(t, err)
	if step.Flow != Wait || s.LocalReply() != nil {
		t.Errorf("flow %v, reply %+v", step.Flow, s.LocalReply())
	}
	// What still comes of the request is not the plugin's business any more.
	if step, err := s.RequestBody([]byte("late"), true); err != nil || step.Flow != Wait {
		t.Errorf("late body: %+v, %v", step, err)
	}
	if n := p.Counters().Callbacks["proxy_on_request_body"]; n != 0 {
		t.Errorf("%d body callbacks", n)
	}
	p.Advance(1000e6)
	if step := s.ResponseReady(); step.Flow != Reply {
		t.Errorf("ready %+v", step)
	}
	if r := s.LocalReply(); r == nil || r.Status != 202 || string(r.Body) != "other" {
		t.Errorf("reply %+v", r)
	}
}

// Once a response is under way, a reply replaces it without the plugin, or, after its headers have gone, cuts the stream.
func TestLocalReplyInTheResponse(t *testing.T) {
	p := newProbe(t, "response_headers reply 502 bad")
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	step, err := s.ResponseHeaders(reply, false)
	ok(t, err)
	if r := s.LocalReply(); step.Flow != Reply || r.Status != 502 || string(r.Body) != "bad" {
		t.Errorf("flow %v, reply %+v", step.Flow, r)
	}

	p = newProbe(t, "response_body reply 502 bad")
	s = p.Worker(0).NewStream()
	_, err = s.RequestHeaders(get, true)
	ok(t, err)
	_, err = s.ResponseHeaders(reply, false)
	ok(t, err)
	if step, err := s.ResponseBody([]byte("x"), false); err != nil || step.Flow != Reset {
		t.Errorf("after the headers: %+v, %v", step, err)
	}
}

// A second reply in one callback is ignored.
func TestOneLocalReplyAStream(t *testing.T) {
	p := newProbe(t, "request_headers reply 200 one\nrequest_headers reply 500 two")
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	if r := s.LocalReply(); r.Status != 200 || string(r.Body) != "one" {
		t.Errorf("reply %+v", r)
	}
	ok(t, s.End(EndNormal))
	if got := p.Counters().Callbacks["proxy_on_response_headers"]; got != 1 {
		t.Errorf("%d response callbacks", got)
	}
}

// A reply that outgrows the plugin's own buffering is replaced, not lost.
func TestLocalReplyOverTheBufferLimit(t *testing.T) {
	p := newProbe(t, "request_headers reply 200 abcdef\nresponse_headers return 1\nresponse_body return 1",
		func(c *Config) { c.AllowOnHeadersStopIteration, c.BufferLimit = true, 5 })
	s := p.Worker(0).NewStream()
	step, err := s.RequestHeaders(get, true)
	ok(t, err)
	if r := s.LocalReply(); step.Flow != Reply || r == nil || r.Status != 500 {
		t.Errorf("flow %v, reply %+v", step.Flow, r)
	}
}

// A gRPC call gets its status in headers, mapped from HTTP where the plugin gave none; HEAD gets no body. Seen on Envoy
// 1.36.4 and 1.40.0.
func TestLocalReplyTakesTheRequestsShape(t *testing.T) {
	grpc := Headers{{":method", "POST"}, {":path", "/"}, {"content-type", "application/grpc+proto"}}
	head := Headers{{":method", "HEAD"}, {":path", "/"}}
	for _, tt := range []struct {
		script  string
		request Headers
		want    Headers
	}{
		{"request_headers replyas 403 d no%way 9", grpc, Headers{{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "9"}, {"grpc-message", "no way"}}},
		{"request_headers reply 503 50%%", grpc, Headers{{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "14"}, {"grpc-message", "50  "}}},
		{"request_headers reply 418 ~", grpc, Headers{{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "2"}}},
		{"request_headers reply 403 no", head, Headers{{":status", "403"}, {"content-length", "2"}, {"content-type", "text/plain"}}},
	} {
		p := newProbe(t, tt.script)
		s := p.Worker(0).NewStream()
		_, err := s.RequestHeaders(tt.request, true)
		ok(t, err)
		if r := s.LocalReply(); r == nil || string(encodePairs(r.Headers)) != string(encodePairs(tt.want)) || len(r.Body) != 0 {
			t.Errorf("%s: %+v", tt.script, r)
		}
	}
	if got, want := percentEncoded([]byte("a%\x00é~")), "a%25%00%C3%A9~"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
