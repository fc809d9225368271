package full

import (
	"errors"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

func exchange(p *probe) {
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(hostsim.Headers{{":method", "POST"}, {":path", "/a"}, {":authority", "b"}, {"x-remove", "r"},
		{"x-replace", "old"}, {"x-filler", strings.Repeat("f", 900)}}, false)
	p.ok(err)
	p.heard("request headers", `request headers [6 false /a 6 <nil> <nil>]
		set all [<nil>]
		add [<nil>]
		replace [<nil>]
		remove [<nil>]
		set property [<nil>]
		property [/a <nil>]
		get absent [error status returned by host: not found]
		set [<nil>]
		get [value of /a <nil>]
		resolve [true <nil>]
		enqueue [<nil>]
		foreign [true <nil>]
		foreign [text <nil>]`)
	changed := s.Headers(hostsim.MapRequestHeaders)
	if changed.Value("x-set")+changed.Value("x-add")+changed.Value("x-replace")+changed.Value("x-remove") != "123" {
		p.t.Errorf("upstream gets %v", changed)
	}
	step, err := s.RequestBody([]byte("body"), false)
	p.ok(err)
	if string(step.Data) != "<body>" {
		p.t.Errorf("upstream gets the body %q", step.Data)
	}
	_, err = s.RequestTrailers(hostsim.Headers{{"x-trailer", "t"}})
	p.ok(err)
	_, err = s.ResponseHeaders(hostsim.Headers{{":status", "200"}}, false)
	p.ok(err)
	_, err = s.ResponseBody([]byte("answer"), false)
	p.ok(err)
	_, err = s.ResponseTrailers(hostsim.Headers{{"x-trailer", "u"}})
	p.ok(err)
	p.ok(s.End(hostsim.EndNormal))
	p.heard("the rest", `request body [body false <nil>]
		body [<nil> <nil>]
		request trailers [1 [[x-trailer t]] <nil>]
		response headers [1 false [[:status 200]] <nil>]
		response body [answer false <nil> <nil>]
		response trailers [1 [[x-trailer u]] <nil>]
		kept [[/a]]
		log [<nil>]`)
}

func pluginCalls(p *probe) {
	p.Advance(time.Second)
	p.heard("tick", `queue ready [true job of /a <nil>]
		metrics [4 -6]
		call [<nil>]
		answer [1 1 [[:status 200]] to ask [[x-end 1]] <nil> <nil> <nil>]`)
	if m, _ := p.Metric("probe.histogram"); m.Count != 2 {
		p.t.Errorf("histogram %+v, want a record of each thread", m)
	}
}

func connection(p *probe) {
	c := p.Worker(0).NewConnection()
	_, err := c.Open()
	p.ok(err)
	_, err = c.DownstreamData([]byte("ping"), false)
	p.ok(err)
	_, err = c.UpstreamData([]byte("pong"), true)
	p.ok(err)
	p.ok(c.Close(hostsim.CloseRemote))
	p.heard("connection", `new connection []
		downstream data [ping false <nil> <nil>]
		upstream data [pong true <nil>]
		upstream close [0]
		downstream close [2]
		connection done []`)
	c = p.Worker(0).NewConnection()
	_, err = c.Open()
	p.ok(err)
	_, err = c.UpstreamData([]byte("bye"), false)
	p.ok(err)
	p.heard("a connection that the plugin closes", `new connection []
		upstream data [bye false <nil>]
		close [<nil>]
		downstream close [1]
		connection done []`)
}

// reconfigure ends the first plugin context, which asks for time and then is done.
func reconfigure(p *probe) {
	p.ok(p.Reconfigure([]byte("more")))
	p.Drain()
	p.heard("done", `vm_start [2 vm <nil>]
		configure [4 more <nil>]
		tick period [<nil>]
		register queue [<nil>]
		done, later []`)
}

func reply(p *probe) {
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(hostsim.Headers{{":method", "GET"}, {":path", "/reply"}, {":authority", "b"}}, true)
	p.ok(err)
	if r := s.LocalReply(); r == nil || r.Status != 418 || string(r.Body) != "replaced" || r.Headers.Value("x-teapot") != "yes" {
		p.t.Errorf("local reply %+v", r)
	}
	p.ok(s.End(hostsim.EndNormal))
	p.heard("reply", `request headers [3 true /reply 3 <nil> <nil>]
		reply [<nil>]
		response headers [4 false [[:status 418] [x-teapot yes] [content-length 15] [content-type text/plain]] <nil>]
		response body [short and stout true <nil> <nil>]
		kept [[/a /reply]]
		log [<nil>]`)
}

// panics comes last: the virtual machine is dead afterwards.
func panics(p *probe) {
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(hostsim.Headers{{":method", "GET"}, {":path", "/panic"}, {":authority", "b"}}, true)
	if !errors.Is(err, hostsim.ErrTrap) {
		p.t.Errorf("a panic gives %v, want a trap", err)
	}
	logs := p.Logs()
	const want = "panic in proxy_on_request_headers: assignment to entry in nil map (main.(*stream).OnHttpRequestHeaders at "
	if line := logs[len(logs)-2]; !strings.HasPrefix(line.Message, want) || line.Level != hostsim.LogCritical {
		p.t.Errorf("before the trap the log has %s %q, want %q", line.Level, line.Message, want)
	}
}
