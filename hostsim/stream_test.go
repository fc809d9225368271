package hostsim

import (
	"errors"
	"strings"
	"testing"
)

// One line a callback, in Envoy's order, for every way in which a stream can go.
func TestLifeCycles(t *testing.T) {
	body := func(s *Stream, t *testing.T) {
		_, err := s.RequestHeaders(get, false)
		ok(t, err)
		_, err = s.RequestBody([]byte("abc"), true)
		ok(t, err)
	}
	for _, tt := range []struct {
		name string
		run  func(s *Stream, t *testing.T)
		end  EndReason
		want string
	}{
		{"normal", func(s *Stream, t *testing.T) {
			body(s, t)
			_, err := s.ResponseHeaders(reply, false)
			ok(t, err)
			_, err = s.ResponseBody([]byte("12"), false)
			ok(t, err)
			_, err = s.ResponseBody(nil, true)
			ok(t, err)
		}, EndNormal, `
			> context_create 2 1
			> request_headers 2 3 0
			> request_body 2 3 1
			> response_headers 2 1 0
			> response_body 2 2 0
			> response_body 2 0 1
			> log 2
			> done 2
			> delete 2`},
		{"trailers", func(s *Stream, t *testing.T) {
			_, err := s.RequestHeaders(get, false)
			ok(t, err)
			_, err = s.RequestBody([]byte("abc"), false)
			ok(t, err)
			_, err = s.RequestTrailers(Headers{{"a", "1"}, {"b", "2"}})
			ok(t, err)
			_, err = s.ResponseHeaders(reply, false)
			ok(t, err)
			_, err = s.ResponseTrailers(Headers{{"c", "3"}})
			ok(t, err)
		}, EndNormal, `
			> context_create 2 1
			> request_headers 2 3 0
			> request_body 2 3 0
			> request_trailers 2 2
			> response_headers 2 1 0
			> response_trailers 2 1
			> log 2
			> done 2
			> delete 2`},
		{"client gone in the request", body, EndClientGone, `
			> context_create 2 1
			> request_headers 2 3 0
			> request_body 2 3 1
			> log 2
			> done 2
			> delete 2`},
		{"upstream breaks off", func(s *Stream, t *testing.T) {
			body(s, t)
			_, err := s.ResponseHeaders(reply, false)
			ok(t, err)
			_, err = s.ResponseBody([]byte("12"), false)
			ok(t, err)
		}, EndUpstreamReset, `
			> context_create 2 1
			> request_headers 2 3 0
			> request_body 2 3 1
			> response_headers 2 1 0
			> response_body 2 2 0
			> log 2
			> done 2
			> delete 2`},
		{"never saw request headers", func(*Stream, *testing.T) {}, EndNormal, `
			> context_create 2 1
			> log 2
			> done 2
			> delete 2`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProbe(t, "configure log 0 x")
			s := p.Worker(0).NewStream()
			tt.run(s, t)
			if got := p.Worker(0).OpenStreams(); got != 1 {
				t.Errorf("%d open streams", got)
			}
			ok(t, s.End(tt.end))
			ok(t, s.End(tt.end)) // a second end is none
			p.expect(tt.want)
			if _, err := s.RequestHeaders(get, true); !errors.Is(err, ErrStreamEnded) {
				t.Errorf("after the end: %v", err)
			}
			if got := p.Worker(0).OpenStreams(); got != 0 {
				t.Errorf("%d open streams after the end", got)
			}
			if n := len(p.Worker(0).vm.contexts); n != 1 {
				t.Errorf("%d contexts left, want the root alone", n)
			}
		})
	}
}

func TestPartsOutOfOrder(t *testing.T) {
	p := newProbe(t, "")
	s := p.Worker(0).NewStream()
	for name, call := range map[string]func() error{
		"body before headers":     func() error { _, err := s.RequestBody(nil, true); return err },
		"response before request": func() error { _, err := s.ResponseHeaders(reply, true); return err },
		"trailers before headers": func() error { _, err := s.RequestTrailers(nil); return err },
	} {
		if err := call(); !errors.Is(err, ErrOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	if _, err := s.RequestHeaders(get, true); !errors.Is(err, ErrOrder) {
		t.Errorf("headers twice: %v", err)
	}
	if _, err := s.RequestBody(nil, true); !errors.Is(err, ErrOrder) {
		t.Errorf("body after the end: %v", err)
	}
	p.expect("> context_create 2 1\n> request_headers 2 3 1")
}

// Without allow_on_headers_stop_iteration a pause in the headers holds the body back as well, for ever.
func TestPauseInHeadersWithoutTheFlag(t *testing.T) {
	p := newProbe(t, "request_headers return 1")
	s := p.Worker(0).NewStream()
	for i, call := range []func() (Step, error){
		func() (Step, error) { return s.RequestHeaders(get, false) },
		func() (Step, error) { return s.RequestBody([]byte("abc"), false) },
		func() (Step, error) { return s.RequestBody([]byte("def"), true) },
	} {
		step, err := call()
		ok(t, err)
		if step.Flow != Wait || step.Headers || step.Data != nil || step.End {
			t.Errorf("part %d: %+v", i, step)
		}
	}
	p.expect("> context_create 2 1\n> request_headers 2 3 0")
}

// When such a stream is resumed, headers go on first and the body then comes to the plugin.
func TestResumeAfterPauseInHeaders(t *testing.T) {
	for _, trailers := range []bool{false, true} {
		p := newProbe(t, `
			configure tickevery 1000
			request_headers return 1
			tick effective 2
			tick continue 0`)
		s := p.Worker(0).NewStream()
		wake := s.Wake()
		_, err := s.RequestHeaders(get, false)
		ok(t, err)
		_, err = s.RequestBody([]byte("abc"), !trailers)
		ok(t, err)
		if trailers {
			_, err = s.RequestTrailers(Headers{{"a", "1"}})
			ok(t, err)
		}
		select {
		case <-wake:
			t.Error("woken too early")
		default:
		}
		p.Advance(1000e6)
		select {
		case <-wake:
		default:
			t.Error("not woken")
		}
		want := "> request_body 2 3 1"
		if trailers {
			want = "> request_body 2 3 0\n> request_trailers 2 1"
		}
		p.expect(`
			> context_create 2 1
			> request_headers 2 3 0
			> tick 1
			effective 2 = 0
			continue 0 = 0
			` + want)
		step := s.RequestReady()
		if step.Flow != Forward || !step.Headers || string(step.Data) != "abc" || !step.End {
			t.Errorf("trailers %v: ready %+v", trailers, step)
		}
		if step := s.RequestReady(); step.Headers || step.Data != nil || step.End {
			t.Errorf("ready twice: %+v", step)
		}
	}
}

// With end of stream in the headers nothing is left to come to the plugin.
func TestResumeOfHeadersThatEndTheStream(t *testing.T) {
	p := newProbe(t, `
		configure tickevery 1000
		request_headers return 1
		tick effective 2
		tick continue 0`)
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	p.Advance(1000e6)
	if step := s.RequestReady(); step.Flow != Forward || !step.Headers || !step.End {
		t.Errorf("ready %+v", step)
	}
	if got := p.heard(); strings.Contains(got, "request_body") {
		t.Errorf("heard\n%s", got)
	}
}

// The data answers: 1 collects and shows the whole, 2 collects and shows the chunk, 3 drops.
func TestDataAnswers(t *testing.T) {
	for _, tt := range []struct{ answer, sizes, body string }{
		{"0", "2 4 3", "aabbbbccc"},
		{"1", "2 6 9", "aabbbbccc"},
		{"2", "2 4 3", "aabbbbccc"},
		{"3", "2 4 3", "ccc"},
	} {
		for _, response := range []bool{false, true} {
			name, headers := "request", get
			if response {
				name, headers = "response", reply
			}
			p := newProbe(t, name+"_body when 1 return "+tt.answer+"\n"+name+"_body when 2 return "+tt.answer)
			s := p.Worker(0).NewStream()
			sendHeaders, sendBody := s.RequestHeaders, s.RequestBody
			if response {
				_, err := s.RequestHeaders(get, true)
				ok(t, err)
				sendHeaders, sendBody = s.ResponseHeaders, s.ResponseBody
			}
			_, err := sendHeaders(headers, false)
			ok(t, err)
			body := ""
			for i, chunk := range []string{"aa", "bbbb", "ccc"} {
				step, err := sendBody([]byte(chunk), i == 2)
				ok(t, err)
				if waits := tt.answer != "0" && i < 2; waits != (step.Flow == Wait) || waits && step.Data != nil {
					t.Errorf("answer %s, chunk %d: %+v", tt.answer, i, step)
				}
				body += string(step.Data)
			}
			var sizes []string
			for line := range strings.SplitSeq(p.heard(), "\n") {
				if f := strings.Fields(line); len(f) == 5 && f[1] == name+"_body" {
					sizes = append(sizes, f[3])
				}
			}
			if got := strings.Join(sizes, " "); got != tt.sizes || body != tt.body {
				t.Errorf("%s answer %s: sizes %s, want %s; body %q, want %q", name, tt.answer, got, tt.sizes, body, tt.body)
			}
		}
	}
}

// The limit is exact, and only for a plugin that asks for buffering.
func TestBufferLimit(t *testing.T) {
	for _, tt := range []struct {
		answer string
		size   int
		status int
	}{
		{"1", 1 << 20, 0}, {"1", 1<<20 + 1, 413}, {"2", 1<<20 + 1, 0},
	} {
		p := newProbe(t, "request_headers return 1\nrequest_body return "+tt.answer,
			func(c *Config) { c.AllowOnHeadersStopIteration = true })
		s := p.Worker(0).NewStream()
		_, err := s.RequestHeaders(get, false)
		ok(t, err)
		_, err = s.RequestBody(make([]byte, 10), false)
		ok(t, err)
		step, err := s.RequestBody(make([]byte, tt.size-10), false)
		ok(t, err)
		status := 0
		if r := s.LocalReply(); r != nil {
			status = r.Status
		}
		if status != tt.status || (status != 0) != (step.Flow == Reply) {
			t.Errorf("answer %s, %d bytes: status %d, flow %v; want %d", tt.answer, tt.size, status, step.Flow, tt.status)
		}
	}
	p := newProbe(t, "response_headers return 1\nresponse_body return 1", func(c *Config) { c.AllowOnHeadersStopIteration, c.BufferLimit = true, 5 })
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	_, err = s.ResponseHeaders(reply, false)
	ok(t, err)
	_, err = s.ResponseBody([]byte("123456"), false)
	ok(t, err)
	if r := s.LocalReply(); r == nil || r.Status != 500 {
		t.Errorf("response over the limit: %+v", r)
	}
}

func TestCloseStream(t *testing.T) {
	p := newProbe(t, "request_headers close 0")
	s := p.Worker(0).NewStream()
	step, err := s.RequestHeaders(get, true)
	ok(t, err)
	if step.Flow != Reset {
		t.Errorf("flow %v", step.Flow)
	}
	ok(t, s.End(EndClientGone))
	p.expect(`
		> context_create 2 1
		> request_headers 2 3 1
		close 0 = 0
		> log 2
		> done 2
		> delete 2`)
}

// The chunk that a caller hands over stays the caller's, and what goes on is the receiver's.
func TestBodiesAreNotShared(t *testing.T) {
	p := newProbe(t, "request_body when 1 return 1")
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, false)
	ok(t, err)
	chunk := []byte("aaa")
	_, err = s.RequestBody(chunk, false)
	ok(t, err)
	copy(chunk, "xxx")
	step, err := s.RequestBody([]byte("b"), true)
	ok(t, err)
	if string(step.Data) != "aaab" {
		t.Errorf("body %q", step.Data)
	}
}
