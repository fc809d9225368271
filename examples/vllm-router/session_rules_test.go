//go:build peer

package vllmrouter

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// theirHeaders are the headers in which vllm-router looks for a session id, in its order.
var theirHeaders = []string{"x-session-id", "x-user-id", "x-tenant-id", "x-correlation-id", "x-request-id", "x-trace-id"}

func ruleSessionHeaders(t *testing.T) {
	for _, configured := range []bool{false, true} {
		extra := map[string]any{}
		if configured {
			extra["session"] = map[string]any{"headers": theirHeaders}
		}
		p := startPair(t, 2, 2, extra)
		for i, header := range theirHeaders {
			// A later header of the list stands beside it and does not count.
			last := theirHeaders[len(theirHeaders)-1]
			headers := [][2]string{{header, "by-" + header}}
			if header != last {
				headers = append(headers, [2]string{last, "other"})
			}
			p.on(&p.peer.router, "POST", chat, prompt, headers...)
			if !p.theyKnow("by-"+header) || p.theyKnow("other") {
				t.Errorf("vllm-router takes no session from %s", header)
			}
			a := p.on(&p.ours.router, "POST", chat, prompt, headers...)
			want := "keyless"
			if configured || i == 0 {
				want = "placed"
			}
			if a.reason != want || want == "placed" && !p.weKnow("by-"+header) {
				t.Errorf("Pinwheel, all six configured %v, %s: %+v, want %s", configured, header, a, want)
			}
		}
	}
}

func ruleRepeatedHeader(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	headers := [][2]string{{"X-Session-Id", "first"}, {"X-Session-Id", "last"}}
	p.on(&p.peer.router, "POST", chat, prompt, headers...)
	p.on(&p.ours.router, "POST", chat, prompt, headers...)
	if p.theyKnow("first") || !p.theyKnow("last") {
		t.Error("vllm-router does not take the last of two")
	}
	if !p.weKnow("first") || p.weKnow("last") {
		t.Error("Pinwheel does not take the first of two")
	}
}

func ruleUnderscores(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	header := [2]string{"x_session_id", "s"}
	p.on(&p.peer.router, "POST", chat, prompt, header)
	p.on(&p.ours.router, "POST", chat, prompt, header)
	if p.theyKnow("s") {
		t.Error("vllm-router finds the header that is spelled with _")
	}
	if !p.weKnow("s") {
		t.Error("Pinwheel does not")
	}
}

func ruleLongIDs(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	long := strings.Repeat("x", 257)
	p.turn(&p.peer.router, long)
	if !p.theyKnow(long) {
		t.Error("vllm-router does not know the session")
	}
	if a := p.turn(&p.ours.router, long); a.reason != "oversized" {
		t.Errorf("Pinwheel: %+v, want oversized", a)
	}
	if p.turn(&p.ours.router, long[1:]); !p.weKnow(long[1:]) {
		t.Error("Pinwheel does not know the session with 256 bytes")
	}
}

// Twelve chat requests, no two alike.
func ruleKeyless(t *testing.T) {
	p := startPair(t, 3, 3, nil)
	theirs, ours := map[string]int{}, map[string]int{}
	for i := range 12 {
		body := strings.Replace(prompt, "hello", fmt.Sprint("prompt ", i), 1)
		theirs[p.on(&p.peer.router, "POST", chat, body).replica]++
		ours[p.on(&p.ours.router, "POST", chat, body).replica]++
	}
	p.oneAgainstAll(t, theirs, ours)
}

func ruleAllPaths(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	session := [2]string{"X-Session-Id", "s"}
	p.on(&p.peer.router, "GET", "/v1/models", "", session)
	a := p.on(&p.ours.router, "GET", "/v1/models", "", session)
	if p.theyKnow("s") {
		t.Error("vllm-router opens a session for GET /v1/models")
	}
	if a.reason != "placed" || !p.weKnow("s") {
		t.Errorf("Pinwheel: %+v, want placed", a)
	}
}

func ruleRelease(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	for _, c := range []struct {
		what, method, path string
		headers            [][2]string
		theirs, ours       int
	}{
		{"an id", "POST", "/finish_session?session_id=a", nil, 200, 200},
		{"the same again", "POST", "/finish_session?session_id=a", nil, 200, 200},
		{"an empty id", "POST", "/finish_session?session_id=", nil, 200, 400},
		{"no id", "POST", "/finish_session", nil, 400, 400},
		{"the id in the header", "POST", "/finish_session", [][2]string{{"X-Session-Id", "a"}}, 400, 200},
		{"DELETE", "DELETE", "/finish_session?session_id=a", nil, 405, 200},
	} {
		if a := p.on(&p.peer.router, c.method, c.path, "", c.headers...); a.status != c.theirs {
			t.Errorf("vllm-router, %s: %+v, want %d", c.what, a, c.theirs)
		}
		if a := p.on(&p.ours.router, c.method, c.path, "", c.headers...); a.status != c.ours {
			t.Errorf("Pinwheel, %s: %+v, want %d", c.what, a, c.ours)
		}
	}
	for _, id := range []string{"a", "b"} {
		p.turn(&p.peer.router, id)
		p.turn(&p.ours.router, id)
	}
	before, ok := p.peer.log.of("b")
	const list = "/finish_session?session_id=a,b"
	if a := p.on(&p.peer.router, "POST", list, ""); a.status != 200 {
		t.Errorf("vllm-router, a list: %+v", a)
	}
	p.turn(&p.peer.router, "b") // if it were placed anew it would be logged as the only one
	if after, _ := p.peer.log.of("b"); !ok || p.theyKnow("c") || after != before {
		t.Errorf("vllm-router ends b in a list: %v, then %v", before, after)
	}
	if a := p.on(&p.ours.router, "POST", list, ""); a.status != 200 || p.weKnow("a") || p.weKnow("b") {
		t.Errorf("Pinwheel does not end a and b: %+v", a)
	}
}

// vllm-router 0.1.17 has code for ids in bodies, and its routes for chat and completions do not reach it.
func ruleBodies(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	for _, c := range []struct{ path, body string }{
		{chat, `{"model":"m","messages":[{"role":"user","content":"hello"}],"user":"body"}`},
		{chat, `{"model":"m","messages":[{"role":"user","content":"hello"}],"session_id":"body"}`},
		{chat, `{"model":"m","messages":[{"role":"user","content":"hello"}],"session_params":{"session_id":"body"}}`},
		{"/v1/completions", `{"model":"m","prompt":"hello","user":"body"}`},
		{"/v1/completions", `{"model":"m","prompt":"hello","session_id":"body"}`},
	} {
		if a := p.on(&p.peer.router, "POST", c.path, c.body); a.status != 200 || p.theyKnow("body") {
			t.Errorf("vllm-router, %s %s: %+v, known %v", c.path, c.body, a, p.theyKnow("body"))
		}
		if a := p.on(&p.ours.router, "POST", c.path, c.body); a.reason != "keyless" {
			t.Errorf("Pinwheel, %s %s: %+v, want keyless", c.path, c.body, a)
		}
	}
}

// Both look at a session's age when it has a turn, whether or not a sweep has come by: with a timeout of 0 no turn finds
// its session alive there; here the clock moves.
func ruleIdleTimeout(t *testing.T) {
	p := startPair(t, 2, 2, map[string]any{"session": map[string]any{"idle_timeout": "10m"}}, "VLLM_ROUTER_SLL_SESSION_EXPIRATION_IN_S=0")
	for range 3 {
		p.turn(&p.peer.router, "s")
		if !p.theyKnow("s") {
			t.Error("vllm-router keeps a session that is over")
		}
		p.peer.log.forget("s")
	}
	p.turn(&p.ours.router, "s")
	p.ours.host.Advance(9 * time.Minute)
	if a := p.turn(&p.ours.router, "s"); a.reason != "pinned" {
		t.Errorf("Pinwheel after 9 of 10 minutes: %+v, want pinned", a)
	}
	p.ours.host.Advance(9 * time.Minute)
	if a := p.turn(&p.ours.router, "s"); a.reason != "pinned" {
		t.Errorf("Pinwheel after 9 more: %+v, want pinned", a)
	}
	p.ours.host.Advance(10 * time.Minute)
	if a := p.turn(&p.ours.router, "s"); a.reason != "placed" && a.reason != "expired" {
		t.Errorf("Pinwheel after 10 minutes: %+v, want it placed anew", a)
	}
}
