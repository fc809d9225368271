package hostsim

import (
	"strings"
	"testing"
)

func TestHeaderMaps(t *testing.T) {
	p := newProbe(t, `
		request_headers get 0 X-One
		request_headers get 0 x-twice
		request_headers get 0 x-empty
		request_headers get 0 x-none
		request_headers get 2 x-one
		request_headers get 9 x-one
		request_headers add 0 X-New first
		request_headers add 0 x-new second
		request_headers replace 0 x-twice only
		request_headers replace 0 X-Fresh made
		request_headers remove 0 X-One
		request_headers get 0 x-twice
		request_headers mapsize 0
		request_headers pairs 0
		request_headers pairs 2`)
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(Headers{{":path", "/"}, {"X-One", "1"}, {"x-twice", "a"}, {"x-mid", "m"}, {"X-Twice", "b"}, {"x-empty", ""}}, true)
	ok(t, err)
	p.results(`
		get 0 X-One = 0 1
		get 0 x-twice = 0 a
		get 0 x-empty = 0
		get 0 x-none = 1
		get 2 x-one = 2
		get 9 x-one = 2
		add 0 X-New first = 0
		add 0 x-new second = 0
		replace 0 x-twice only = 0
		replace 0 X-Fresh made = 0
		remove 0 X-One = 0
		get 0 x-twice = 0 only
		mapsize 0 = 0 62
		pairs 0 = 0 :path=/, x-mid=m, x-empty=, x-new=first, x-new=second, x-twice=only, x-fresh=made
		pairs 2 = 0`)
	got := s.Headers(MapRequestHeaders)
	if got.Value("x-fresh") != "made" || len(got.Values("x-new")) != 2 || got[0] != [2]string{":path", "/"} {
		t.Errorf("headers %v", got)
	}
}

// Values are bytes: nothing on the way minds what they are.
func TestHeaderValuesAreBytes(t *testing.T) {
	p := newProbe(t, `
		request_headers get 0 x-id
		request_headers replace 0 x-copy `+"\xc0\xa7\xff\xfe")
	id := "\xc0\xa7\xc0\xa2\x80\xff"
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(Headers{{"x-id", id}}, true)
	ok(t, err)
	if got := p.heard(); !strings.Contains(got, "get 0 x-id = 0 "+id) {
		t.Errorf("heard %q", got)
	}
	if got := s.Headers(MapRequestHeaders).Value("x-copy"); got != "\xc0\xa7\xff\xfe" {
		t.Errorf("x-copy %q", got)
	}
}

func TestSetHeaderPairs(t *testing.T) {
	p := newProbe(t, "request_headers setpairs 0 :path=/new X-A=1 x-a=2 x-b=")
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	if got := encodePairs(s.Headers(MapRequestHeaders)); string(got) != string(encodePairs(Headers{{":path", "/new"}, {"x-a", "1"}, {"x-a", "2"}, {"x-b", ""}})) {
		t.Errorf("headers %v", s.Headers(MapRequestHeaders))
	}
}

// Once a direction has gone on, its map is gone; in the log phase all that arrived can be read again, but not written.
func TestMapsCloseOnContinueAndOpenForTheLog(t *testing.T) {
	p := newProbe(t, `
		request_body get 0 :path
		response_headers get 0 :path
		response_headers replace 0 x-late v
		response_headers get 2 :status
		response_body get 2 :status
		log get 0 :path
		log get 2 :status
		log get 3 x-trailer
		log get 1 x-trailer
		log replace 0 x-late v
		done get 0 :path`)
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, false)
	ok(t, err)
	_, err = s.RequestBody([]byte("x"), true)
	ok(t, err)
	_, err = s.ResponseHeaders(reply, false)
	ok(t, err)
	_, err = s.ResponseBody([]byte("x"), true)
	ok(t, err)
	ok(t, s.End(EndNormal))
	p.results(`
		get 0 :path = 2
		get 0 :path = 2
		replace 0 x-late v = 2
		get 2 :status = 0 200
		get 2 :status = 2
		get 0 :path = 0 /a?b=c
		get 2 :status = 0 200
		get 3 x-trailer = 1
		get 1 x-trailer = 1
		replace 0 x-late v = 2
		get 0 :path = 2`)
}

// A paused request keeps its headers open, so that a body callback can still name the upstream.
func TestHeadersStayOpenWhilePaused(t *testing.T) {
	p := newProbe(t, `
		request_headers return 1
		request_body replace 0 x-dest there
		response_headers get 0 :path`, func(c *Config) { c.AllowOnHeadersStopIteration = true })
	s := p.Worker(0).NewStream()
	step, err := s.RequestHeaders(get, false)
	ok(t, err)
	if step.Flow != Wait || step.Headers {
		t.Errorf("headers: %+v", step)
	}
	step, err = s.RequestBody([]byte("body"), true)
	ok(t, err)
	if !step.Headers || string(step.Data) != "body" || !step.End || step.Flow != Forward {
		t.Errorf("body: %+v", step)
	}
	if got := s.Headers(MapRequestHeaders).Value("x-dest"); got != "there" {
		t.Errorf("x-dest %q", got)
	}
	_, err = s.ResponseHeaders(reply, true)
	ok(t, err)
	if got := p.heard(); !strings.Contains(got, "get 0 :path = 0 /a?b=c") {
		t.Errorf("heard\n%s", got)
	}
}

// So can a tick, in the name of the stream, with or without a body so far. As seen on Envoy 1.36.4 and 1.40.0.
func TestATickWritesHeadersOfWhatItResumes(t *testing.T) {
	for _, flag := range []bool{true, false} {
		for _, chunks := range [][]string{nil, {"bo"}, {"bo", "dy"}} {
			p := newProbe(t, `
				configure tickevery 1000
				request_headers return 1
				request_body return 2
				request_body when 3 return 0
				tick effective 2
				tick replace 0 x-dest there
				tick continue 0
				tick effective 1
				tick get 0 x-dest`, func(c *Config) { c.AllowOnHeadersStopIteration = flag })
			s := p.Worker(0).NewStream()
			_, err := s.RequestHeaders(get, false)
			ok(t, err)
			for _, c := range chunks {
				step, err := s.RequestBody([]byte(c), false)
				ok(t, err)
				if step.Flow != Wait || step.Headers || step.Data != nil {
					t.Errorf("flag %v, %q: %+v", flag, c, step)
				}
			}
			p.Advance(1000e6)
			step := s.RequestReady()
			if want := strings.Join(chunks, ""); !step.Headers || flag && (string(step.Data) != want || step.Flow != Forward) {
				t.Errorf("flag %v, %q: ready %+v", flag, chunks, step)
			}
			if got := s.Headers(MapRequestHeaders).Value("x-dest"); got != "there" {
				t.Errorf("flag %v, %q: x-dest %q", flag, chunks, got)
			}
			if got := p.heard(); !strings.Contains(got, "replace 0 x-dest there = 0") || !strings.Contains(got, "get 0 x-dest = 2") {
				t.Errorf("flag %v, %q: heard\n%s", flag, chunks, got)
			}
		}
	}
}

// And answer in the upstream's place.
func TestATickAnswersWhatWaits(t *testing.T) {
	p := newProbe(t, `
		configure tickevery 1000
		request_headers return 1
		tick effective 2
		tick reply 418 short`)
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, false)
	ok(t, err)
	p.Advance(1000e6)
	if step := s.RequestReady(); step.Flow != Reply || step.Headers || s.LocalReply().Status != 418 {
		t.Errorf("ready %+v", step)
	}
}

// What continue_stream has let go on is out of the plugin's reach.
func TestContinueClosesTheRequest(t *testing.T) {
	p := newProbe(t, `
		configure tickevery 1000
		request_headers return 1
		tick effective 2
		tick get 0 :path
		tick continue 0
		tick get 0 :path`)
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	p.Advance(1000e6)
	p.results("effective 2 = 0\nget 0 :path = 0 /a?b=c\ncontinue 0 = 0\nget 0 :path = 2")
}

// Trailers that nobody sent come into being when the plugin writes one in the last body callback.
func TestTrailers(t *testing.T) {
	p := newProbe(t, `
		request_body when 1 add 1 x-early no
		request_body when 2 add 1 x-late yes
		response_trailers get 3 x-sum
		response_trailers add 3 x-more 2`)
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, false)
	ok(t, err)
	_, err = s.RequestBody([]byte("a"), false)
	ok(t, err)
	_, err = s.RequestBody([]byte("b"), true)
	ok(t, err)
	_, err = s.ResponseHeaders(reply, false)
	ok(t, err)
	step, err := s.ResponseTrailers(Headers{{"X-Sum", "1"}})
	ok(t, err)
	p.results(`
		add 1 x-early no = 2
		add 1 x-late yes = 0
		get 3 x-sum = 0 1
		add 3 x-more 2 = 0`)
	if got := s.Headers(MapRequestTrailers); len(got) != 1 || got.Value("x-late") != "yes" {
		t.Errorf("request trailers %v", got)
	}
	if got := s.Headers(MapResponseTrailers); len(got) != 2 || !step.End {
		t.Errorf("response trailers %v, step %+v", got, step)
	}
}

func TestPairsRejectWhatIsMalformed(t *testing.T) {
	good := encodePairs(Headers{{"a", "1"}, {"b", ""}})
	if got := decodePairs(good); len(got) != 2 || got[0] != [2]string{"a", "1"} || got[1] != [2]string{"b", ""} {
		t.Errorf("decoded %v", got)
	}
	for n := range good {
		if got := decodePairs(good[:n]); got != nil {
			t.Errorf("the first %d bytes read as %v", n, got)
		}
	}
	many := encodePairs(make(Headers, maxPairs+1))
	if got := decodePairs(many); got != nil {
		t.Errorf("%d pairs were taken", len(got))
	}
	if got := decodePairs(encodePairs(make(Headers, maxPairs))); len(got) != maxPairs {
		t.Errorf("%d of %d pairs were taken", len(got), maxPairs)
	}
}

func FuzzDecodePairs(f *testing.F) {
	f.Add(encodePairs(Headers{{"a", "1"}, {"b", ""}}))
	f.Add([]byte{255, 255, 255, 255, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h := decodePairs(b)
		again := decodePairs(encodePairs(h))
		if len(again) != len(h) {
			t.Fatalf("%d pairs became %d", len(h), len(again))
		}
		for i := range h {
			if h[i] != again[i] {
				t.Fatalf("%q became %q", h[i], again[i])
			}
		}
	})
}

func TestHeadersSetKeepsThePlaceOfTheFirst(t *testing.T) {
	h := Headers{{"a", "1"}, {"b", "2"}, {"a", "3"}}
	h.Set("A", "4")
	h.Set("c", "5")
	h.Del("B")
	if len(h) != 2 || h[0] != [2]string{"a", "4"} || h[1] != [2]string{"c", "5"} {
		t.Errorf("%v", h)
	}
}
