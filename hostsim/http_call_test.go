package hostsim

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"
)

// calls is a dispatcher that knows the cluster "admin" and keeps what it is asked.
type calls []*HTTPCall

func (c *calls) dispatch(call *HTTPCall) bool {
	if call.Cluster != "admin" {
		return false
	}
	if call.Worker == 0 { // the main thread's and the canary's are not these tests'
		*c = append(*c, call)
	}
	return true
}

func (c *calls) use(config *Config) { config.HTTPCall = c.dispatch }

const aCall = " httpcall admin 1000 ~ :method=GET :path=/clusters :authority=admin"

const showAnswer = `
	http_call_response pairs 6
	http_call_response get 6 :status
	http_call_response buf 4 0 100
	http_call_response pairs 7`

func TestHTTPCall(t *testing.T) {
	var made calls
	p := newProbe(t, `
		request_headers httpcall admin 1000 the%body :Method=POST :path=/a :authority=b x-c=d
		http_call_response replace 6 a b
		http_call_response bufset 4 0 0 x
		http_call_response bufstat 4
		log buf 4 0 100
		log get 6 :status`+showAnswer, made.use)
	s := p.pass()
	p.results(`httpcall admin 1000 the%body :Method=POST :path=/a :authority=b x-c=d = 0 4
		buf 4 0 100 = 1
		get 6 :status = 1`)
	if len(made) != 1 {
		t.Fatalf("%d calls", len(made))
	}
	c := made[0]
	if want := (Headers{{":method", "POST"}, {":path", "/a"}, {":authority", "b"}, {"x-c", "d"}}); !reflect.DeepEqual(c.Headers, want) ||
		string(c.Body) != "the body" || c.Timeout != time.Second {
		t.Errorf("call %+v", c)
	}
	p.Advance(time.Millisecond)
	p.expect("")
	c.Respond(HTTPResponse{Headers: Headers{{":status", "200"}, {"A", "b"}}, Body: []byte("text"), Trailers: Headers{{"t", "u"}}})
	c.Respond(HTTPResponse{Headers: Headers{{":status", "500"}}}) // the second answer does not count
	p.Advance(0)
	p.expect(`> http_call_response 1 4 2 4 1
		replace 6 a b = 2
		bufset 4 0 0 x = 2
		bufstat 4 = 0 4
		pairs 6 = 0 :status=200, a=b
		get 6 :status = 0 200
		buf 4 0 100 = 0 text
		pairs 7 = 0 t=u`)
	p.Advance(time.Hour)
	p.expect("")
	_ = s
}

func TestHTTPCallsThatAreRefused(t *testing.T) {
	var made calls
	p := newProbe(t, `
		request_headers httpcall nobody 0 ~ :method=GET :path=/ :authority=a
		request_headers httpcall admin 0 ~ :path=/ :authority=a
		request_headers httpcall admin 0 ~ :method=GET :authority=a
		request_headers httpcall admin 0 ~ :method=GET :path=/
		request_headers httpcall admin -1 ~ :method=GET :path=/ :authority=a`, made.use)
	p.pass()
	p.results(`httpcall nobody 0 ~ :method=GET :path=/ :authority=a = 2
		httpcall admin 0 ~ :path=/ :authority=a = 2
		httpcall admin 0 ~ :method=GET :authority=a = 2
		httpcall admin 0 ~ :method=GET :path=/ = 2
		httpcall admin -1 ~ :method=GET :path=/ :authority=a = 2`)
	if len(made) != 0 {
		t.Errorf("%d calls", len(made))
	}
	none := newProbe(t, "request_headers"+aCall)
	none.pass()
	none.results(aCall[1:] + " = 2")
}

// Answers are events on the clock, as ticks are: in the order of their times, before a tick of the same moment.
func TestHTTPCallTimes(t *testing.T) {
	after := []time.Duration{300 * time.Millisecond, 100 * time.Millisecond, 0, 999 * time.Millisecond, 2 * time.Second}
	p := newProbe(t, `
		configure tickevery 100
		tick when 1 `+aCall+`
		tick when 1 `+aCall+`
		tick when 1 `+aCall+`
		tick when 1 `+aCall+`
		tick when 1 `+aCall+`
		http_call_response hostnow
		http_call_response get 6 :status`, func(c *Config) {
		made := 0
		c.HTTPCall = func(call *HTTPCall) bool {
			if call.Worker == 0 {
				call.Respond(HTTPResponse{Headers: Headers{{":status", "200"}}, After: after[made]})
				made++
			}
			return true
		}
	})
	p.Advance(99 * time.Millisecond)
	p.heard()
	p.Advance(101 * time.Millisecond)
	p.results(aCall[1:] + ` = 0 4
		` + aCall[1:] + ` = 0 8
		` + aCall[1:] + ` = 0 12
		` + aCall[1:] + ` = 0 16
		` + aCall[1:] + ` = 0 20
		hostnow = 0 2026-01-01T00:00:00.1Z
		get 6 :status = 0 200
		hostnow = 0 2026-01-01T00:00:00.2Z
		get 6 :status = 0 200`)
	p.Advance(199 * time.Millisecond)
	p.expect("> tick 1")
	p.Advance(time.Millisecond)
	p.expect(`> http_call_response 1 4 1 0 0
		hostnow = 0 2026-01-01T00:00:00.4Z
		get 6 :status = 0 200
		> tick 1`)
	// The host gives up the one that takes 2 s after 1 s, as long as the one that takes 999 ms is in time.
	p.Advance(time.Second)
	p.results(`hostnow = 0 2026-01-01T00:00:01.099Z
		get 6 :status = 0 200
		hostnow = 0 2026-01-01T00:00:01.1Z
		get 6 :status = 0 504`)
	p.Advance(2 * time.Second)
	p.results("")
}

// What the plugin is told of an upstream that is too slow or resets.
func TestHTTPCallFailures(t *testing.T) {
	var made calls
	p := newProbe(t, "request_headers"+aCall+showAnswer, made.use)
	p.pass()
	p.heard()
	p.Advance(time.Second)
	made[0].Respond(HTTPResponse{Headers: Headers{{":status", "200"}}}) // too late
	p.Advance(time.Second)
	p.expect(`> http_call_response 1 4 3 24 0
		pairs 6 = 0 :status=504, content-length=24, content-type=text/plain
		get 6 :status = 0 504
		buf 4 0 100 = 0 upstream request timeout
		pairs 7 = 0`)
	p.pass()
	p.heard()
	made[1].Respond(HTTPResponse{Body: []byte("lost")})
	p.Advance(0)
	p.expect(`> http_call_response 1 8 0 0 0
		pairs 6 = 0
		get 6 :status = 2
		buf 4 0 100 = 1
		pairs 7 = 0`)
}

// A stream that waits for a call goes on from its answer.
func TestStreamWaitsForHTTPCall(t *testing.T) {
	var made calls
	p := newProbe(t, `
		request_headers`+aCall+`
		request_headers return 1
		http_call_response effective 2
		http_call_response buf 4 0 100
		http_call_response replace 0 x-from call
		http_call_response continue 0`, made.use)
	s := p.Worker(0).NewStream()
	wake := s.Wake()
	step, err := s.RequestHeaders(get, true)
	ok(t, err)
	if step.Flow != Wait {
		t.Fatalf("step %+v", step)
	}
	made[0].Respond(HTTPResponse{Headers: reply, Body: []byte("x")})
	p.Advance(0)
	<-wake
	if step := s.RequestReady(); step.Flow != Forward || !step.Headers || s.Headers(MapRequestHeaders).Value("x-from") != "call" {
		t.Errorf("step %+v, headers %v", step, s.Headers(MapRequestHeaders))
	}
}

// A call dies with its virtual machine, and with its plugin context; another plugin context does not hear of it.
func TestHTTPCallsDieWithTheirContext(t *testing.T) {
	var made calls
	p := newProbe(t, "request_headers"+aCall+"\nrequest_headers when 3 panic boom", made.use)
	p.pass()
	ok(t, p.Reconfigure([]byte("configure log 2 new")))
	made[0].Respond(HTTPResponse{Headers: reply})
	p.heard()
	p.Advance(0)
	p.expect("> http_call_response 1 4 1 0 0")

	ok(t, p.Reconfigure([]byte("request_headers"+aCall+"\nrequest_headers when 3 panic boom")))
	p.pass()
	ok(t, p.Reconfigure([]byte("request_headers"+aCall+"\nrequest_headers when 3 panic boom")))
	p.Drain()
	p.heard()
	made[1].Respond(HTTPResponse{Headers: reply})
	p.Advance(0)
	p.expect("")

	s := p.Worker(0).NewStream()
	if _, err := s.RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
		t.Fatalf("err %v", err)
	}
	p.heard()
	made[2].Respond(HTTPResponse{Headers: reply})
	p.Advance(time.Hour)
	p.expect("")
}

// A call may be made while the configuration is read. Each thread makes its own; the canary's is never answered.
func TestHTTPCallFromConfigure(t *testing.T) {
	var callers []int
	p := newProbe(t, "configure"+aCall+"\nhttp_call_response get 6 :status", func(c *Config) {
		c.HTTPCall = func(call *HTTPCall) bool {
			callers = append(callers, call.Worker)
			call.Respond(HTTPResponse{Headers: reply})
			return true
		}
	})
	p.Advance(0)
	p.results("get 6 :status = 0 200")
	if want := []int{Canary, MainThread, 0}; !slices.Equal(callers, want) {
		t.Errorf("calls of %v, want %v", callers, want)
	}
	if got := p.Counters().Callbacks["proxy_on_http_call_response"]; got != 2 {
		t.Errorf("%d answers, want 2", got)
	}
}

// RunTicks delivers answers that come from elsewhere.
func TestRunTicksDeliversAnswers(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := newProbe(t, "request_headers httpcall admin 0 ~ :method=GET :path=/ :authority=a\nhttp_call_response log 2 answered", func(c *Config) {
		c.Clock = &steppingClock{step: time.Millisecond}
		c.HTTPCall = func(call *HTTPCall) bool {
			go call.Respond(HTTPResponse{Headers: reply})
			return true
		}
		c.Log = func(e LogEntry) {
			if e.Message == "answered" {
				cancel()
			}
		}
	})
	p.pass()
	if err := p.RunTicks(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
}
