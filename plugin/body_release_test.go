package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

func jsonType(r hosttest.Request) hosttest.Request {
	return with(r, [2]string{"content-type", "application/json"})
}

// A release may name its session in the body as any request may; query and header
// go before it.
func TestReleaseByBody(t *testing.T) {
	at := func(query string, chunks ...string) hosttest.Request {
		return jsonType(hosttest.Request{Method: "POST", Path: "/finish_session" + query, Chunks: chunks})
	}
	for what, c := range map[string]struct {
		request hosttest.Request
		status  int
		ended   string
	}{
		"body":                      {at("", `{"user":"a"}`), 200, "a"},
		"in chunks":                 {at("", `{"us`, `er":"a`, `"}`, ``), 200, "a"},
		"DELETE":                    {jsonType(hosttest.Request{Method: "DELETE", Path: "/finish_session", Body: `{"user":"a"}`}), 200, "a"},
		"query first":               {at("?session_id=b", `{"user":"a"}`), 200, "b"},
		"header first":              {with(at("", `{"user":"a"}`), sessionHeader("b")), 200, "b"},
		"a comma is no list":        {at("", `{"user":"a,b"}`), 200, ""},
		"unknown":                   {at("", `{"user":"nobody"}`), 200, ""},
		"no id in it":               {at("", `{"messages":["a"]}`), 400, ""},
		"no type":                   {hosttest.Request{Method: "POST", Path: "/finish_session", Body: `{"user":"a"}`}, 400, ""},
		"truncated":                 {at("", `{"user":"a`), 400, ""},
		"behind what is read":       {at("", `{"p":"`+strings.Repeat("x", 70_000), `","user":"a"}`), 400, ""},
		"before a body of 3 MB":     {at("", `{"user":"a","metadata":0,"p":"`, strings.Repeat("x", 3<<20), `"}`), 200, "a"},
		"named, with 300 KB behind": {at("?session_id=a", strings.Repeat("x", 300<<10)), 200, "a"},
		"GET":                       {jsonType(hosttest.Request{Method: "GET", Path: "/finish_session", Body: `{"user":"a"}`}), 405, ""},
	} {
		t.Run(what, func(t *testing.T) {
			g := startReading(t, 2, true, readingBodies)
			for _, id := range []string{"a", "b", "a,c"} {
				g.turn(id)
			}
			g.released(c.request, c.status)
			for _, id := range []string{"a", "b", "a,c"} {
				if open := g.isOpenID(id); open != (id != c.ended) {
					t.Errorf("session %s: open %v", id, open)
				}
			}
			g.Advance(2 * tick)
			g.mustRun(0)
		})
	}
}

// envoyproxy/envoy#28826: a request that was answered twice hung. The answer comes
// once, at the end of the body, or when that does not come.
func TestReleaseIsAnsweredOnce(t *testing.T) {
	headers := append(hostsim.Headers{{":method", "POST"}, {":scheme", "http"}, {":authority", "llm"}, {":path", "/finish_session?session_id=a"}}, [2]string{"expect", "100-continue"})
	for _, flag := range []bool{true, false} {
		g := startReading(t, 1, flag, readingBodies)
		replies := func() uint64 { return g.Counters().HostCalls["env.proxy_send_local_response"] }
		answered := func(w *waiting, when string) {
			t.Helper()
			if w.add(w.RequestReady()); w.step.Flow != hostsim.Reply || w.LocalReply().Status != 200 || w.body != "" {
				t.Errorf("%s: %+v, forwarded %q", when, w.step, w.body)
			}
			g.end(w.Stream, hostsim.EndNormal)
		}
		g.turn("a")
		w := g.paused(0, headers).chunk("{", false)
		if n := g.sessions("default"); n != 0 {
			t.Errorf("%d sessions while the answer waits", n)
		}
		if flag {
			answered(w.chunk("}", true), "at the end of the body")
		} else {
			w.chunk("}", true).still("with the body withheld")
			g.Advance(1600 * time.Millisecond)
			answered(w, "in the end")
		}
		if n := replies(); n != 1 {
			t.Errorf("%d answers, want 1", n)
		}

		// The rest of the body never comes.
		w = g.paused(0, headers).chunk("{", false)
		g.Advance(1600 * time.Millisecond)
		answered(w, "without the end of its body")

		// The client leaves.
		w = g.paused(0, headers).chunk("{", false)
		g.end(w.Stream, hostsim.EndClientGone)
		g.Advance(3 * time.Second)
		if n := replies(); n != 2 {
			t.Errorf("%d answers, want 2", n)
		}
		g.mustServe()
	}
}

// A release with more of a body than is read of any is answered then: it names its
// session already, and nobody wants the rest.
func TestReleaseWithAnEndlessBody(t *testing.T) {
	g := startReading(t, 1, true, readingBodies+`,"body":{"max_bytes":4096}`)
	w := g.paused(0, hostsim.Headers{{":method", "POST"}, {":path", "/finish_session?session_id=a"}})
	w.chunk(strings.Repeat("x", 4000), false).still("within what is read")
	if w.chunk(strings.Repeat("x", 96), false); w.step.Flow != hostsim.Reply || w.LocalReply().Status != 200 {
		t.Errorf("behind what is read: %+v", w.step)
	}
	g.end(w.Stream, hostsim.EndNormal)
}

// Without body handling a release is answered in its headers.
func TestReleaseIsNotHeldWithoutNeed(t *testing.T) {
	g := startReading(t, 1, true, threeReplicas)
	s := g.Worker(0).NewStream()
	step, err := s.RequestHeaders(hostsim.Headers{{":method", "POST"}, {":path", "/finish_session?session_id=a"}}, false)
	if err != nil || step.Flow != hostsim.Reply {
		t.Errorf("%+v, %v", step, err)
	}
	g.end(s, hostsim.EndNormal)
}
