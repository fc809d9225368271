package hostsim

import "testing"

func TestBufferBytes(t *testing.T) {
	p := newProbe(t, `
		configure buf 6 0 100
		configure buf 7 3 6
		request_headers buf 7 0 9
		request_headers buf 0 0 10
		request_body buf 0 0 100
		request_body buf 0 2 3
		request_body buf 0 5 0xffffffff
		request_body buf 0 99 5
		request_body buf 5 0 9
		request_body buf 9 0 9
		request_body bufstat 0
		response_headers buf 0 0 9`, func(c *Config) { c.VMConfig = []byte("vm") })
	p.seen = 0
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, false)
	ok(t, err)
	_, err = s.RequestBody([]byte("0123456789"), true)
	ok(t, err)
	_, err = s.ResponseHeaders(reply, true)
	ok(t, err)
	p.results(`
		buf 6 0 100 = 0 vm
		buf 7 3 6 = 0 config
		buf 7 0 9 = 1
		buf 0 0 10 = 0
		buf 0 0 100 = 0 0123456789
		buf 0 2 3 = 0 234
		buf 0 5 0xffffffff = 0 56789
		buf 0 99 5 = 0
		buf 5 0 9 = 0
		buf 9 0 9 = 2
		bufstat 0 = 0 10
		buf 0 0 9 = 0`)
}

// A write replaces the front or appends at the end; in between is refused.
func TestSetBufferBytes(t *testing.T) {
	for _, tt := range []struct{ op, status, want string }{
		{"bufset 0 0 0 new", "0", "newbody"},
		{"bufset 0 0 2 new", "0", "newdy"},
		{"bufset 0 0 4 new", "0", "new"},
		{"bufset 0 0 99 ~", "0", ""},
		{"bufset 0 4 0 new", "0", "bodynew"},
		{"bufset 0 9 7 new", "0", "bodynew"},
		{"bufset 0 2 1 new", "2", "body"},
		{"bufset 1 0 0 new", "2", "body"},
		{"bufset 7 0 0 new", "1", "body"},
	} {
		p := newProbe(t, "request_body "+tt.op)
		s := p.Worker(0).NewStream()
		_, err := s.RequestHeaders(get, false)
		ok(t, err)
		step, err := s.RequestBody([]byte("body"), true)
		ok(t, err)
		p.results(tt.op + " = " + tt.status)
		if string(step.Data) != tt.want {
			t.Errorf("%s: body %q, want %q", tt.op, step.Data, tt.want)
		}
	}
}
