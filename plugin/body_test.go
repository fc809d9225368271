package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// readingBodies asks bodies for the session after the header.
const readingBodies = threeReplicas + `,"session":{"body":["metadata.session_id","user"]}`

// startReading runs the module in a gateway that shows it bodies while requests
// wait, or that does not.
func startReading(t testing.TB, workers int, flag bool, config string) *gateway {
	t.Helper()
	return startWith(t, hosttest.Options{Workers: workers, Adjust: func(c *hostsim.Config) {
		c.LogLevel, c.AllowOnHeadersStopIteration = hostsim.LogInfo, flag
	}}, config)
}

// chat is a request with a JSON body in these chunks.
func chat(chunks ...string) hosttest.Request {
	return hosttest.Request{Path: "/v1/chat/completions", Headers: hostsim.Headers{{"content-type", "application/json"}}, Chunks: chunks}
}

func with(r hosttest.Request, headers ...[2]string) hosttest.Request {
	r.Headers = append(r.Headers[:len(r.Headers):len(r.Headers)], headers...)
	return r
}

// A session is the one that its header or its body names, in any spelling, in any
// chunks, on any worker. Routing cases "id from body" and "escaped quotes and
// non-string ids in bodies" (vllm-project/router#235).
func TestSessionIDFromBody(t *testing.T) {
	g := startReading(t, 3, true, readingBodies)
	home := map[string]string{}
	for i := range 7 {
		id := fmt.Sprintf("s%d", i)
		r := g.do(chat(`{"metadata":{"session_id":"` + id + `"}}`))
		if r.reason != "placed" || r.Status != 200 {
			t.Fatalf("%s: %d %s", id, r.Status, r.reason)
		}
		home[id] = r.replica
	}
	if n := g.sessions("default"); n != 7 {
		t.Errorf("%d sessions, want 7", n)
	}
	for _, tt := range []struct {
		name    string
		request hosttest.Request
		id      string // "" is keyless
	}{
		{"again", chat(`{"metadata":{"session_id":"s1"}}`), "s1"},
		{"by the second path", chat(`{"user":"s2"}`), "s2"},
		{"by both paths", chat(`{"user":"s2","metadata":{"session_id":"s3"}}`), "s3"},
		{"by both paths, the first useless", chat(`{"user":"s2","metadata":{"session_id":""}}`), "s2"},
		{"escaped", chat(`{"\u0075ser":"\u0073\u0034"}`), "s4"},
		{"byte by byte", chat(strings.Split(`{"messages":["\"user\":\"s1\""],"user":"s5"}`, "")...), "s5"},
		{"with an empty last chunk", chat(`{"user":"s6"}`, ""), "s6"},
		{"behind an empty first chunk", chat("", `{"user":"s6"}`), "s6"},
		{"other JSON", with(hosttest.Request{Headers: hostsim.Headers{{"content-type", "Application/vnd.x+JSON; charset=utf-8"}}, Body: `{"user":"s1"}`}), "s1"},
		{"header first", with(chat(`{"user":"s1"}`), [2]string{"x-session-id", "s2"}), "s2"},
		{"header alone", with(chat(`{}`), [2]string{"x-session-id", "s2"}), "s2"},
		{"empty header", with(chat(`{"user":"s1"}`), [2]string{"x-session-id", " "}), "s1"},

		{"a prompt that spells it", chat(`{"prompt":"user: s1, {\"user\":\"s1\"}"}`), ""},
		{"nested", chat(`{"a":{"user":"s1"},"messages":[{"user":"s1"}]}`), ""},
		{"no string", chat(`{"user":{"user":"s1"},"metadata":["s1"]}`), ""},
		{"null", chat(`{"user":null}`), ""},
		{"another boolean", chat(`{"user":true}`), ""},
		{"empty", chat(`{"user":""}`), ""},
		{"duplicates: the first", chat(`{"user":null,"user":"s1"}`), ""},
		{"truncated", chat(`{"user":"s1`), ""},
		{"no JSON", chat(`user=s1`), ""},
		{"no JSON type", hosttest.Request{Headers: hostsim.Headers{{"content-type", "text/plain"}}, Body: `{"user":"s1"}`}, ""},
		{"no type", hosttest.Request{Body: `{"user":"s1"}`}, ""},
		{"encoded", with(chat(`{"user":"s1"}`), [2]string{"content-encoding", "gzip"}), ""},
		{"encoded as it is", with(chat(`{"user":"s1"}`), [2]string{"content-encoding", "identity"}), "s1"},
		{"no body", hosttest.Request{Headers: hostsim.Headers{{"content-type", "application/json"}}}, ""},
		{"empty body", chat(""), ""},
	} {
		for range g.Workers() {
			r := g.do(tt.request)
			want := "pinned"
			if tt.id == "" {
				want = "keyless"
			}
			if r.Status != 200 || r.reason != want || tt.id != "" && r.replica != home[tt.id] {
				t.Errorf("%s: %d %s on %s, want %s on %s", tt.name, r.Status, r.reason, r.replica, want, home[tt.id])
			}
			if sent := tt.request.Body + strings.Join(tt.request.Chunks, ""); r.RequestBody != sent {
				t.Errorf("%s: upstream got %q of %q", tt.name, r.RequestBody, sent)
			}
		}
	}
	if n := g.sessions("default"); n != 7 {
		t.Errorf("%d sessions, want 7", n)
	}

	// A number names a session by its digits, as a string of them does.
	r := g.do(chat(`{"user":17}`))
	if again := g.do(chat(`{"user":"17"}`)); r.reason != "placed" || again.reason != "pinned" || again.replica != r.replica {
		t.Errorf("number: %s on %s, then %s on %s", r.reason, r.replica, again.reason, again.replica)
	}
	if r = g.do(chat(`{"user":"` + strings.Repeat("x", 257) + `"}`)); r.reason != "oversized" {
		t.Errorf("a long id: %s", r.reason)
	}
	// A long one in the header is no reason to look into the body.
	if r = g.do(with(chat(`{"user":"s1"}`), [2]string{"x-session-id", strings.Repeat("x", 257)})); r.reason != "oversized" {
		t.Errorf("a long id in the header: %s", r.reason)
	}
	g.Advance(2 * tick)
	for _, kind := range []fault{faultBodyLate, faultBodyWithheld, faultBodyBusy} {
		if n := g.Metric("pinwheel_errors_total.kind." + faultNames[kind]); n != 0 {
			t.Errorf("%d times %s", n, faultNames[kind])
		}
	}
}

// smg-project/smg#2480: which of two ids counts depended on the policy.
func TestHeaderBeforeBodyUnderEveryPolicy(t *testing.T) {
	for _, name := range policyNames {
		g := startReading(t, 2, true, `"policy":"`+name+`",`+readingBodies+`,"decision_log":{"enabled":true}`)
		sessions := map[string]string{}
		for _, tt := range []struct{ what, header, body, same string }{
			{"header", "a", `{}`, ""}, {"body", "", `{"user":"b"}`, ""},
			{"underscores", "_a", `{}`, "header"}, {"first path", "", `{"metadata":{"session_id":"b"}}`, "body"},
			{"both", "a", `{"user":"b"}`, "header"}, {"both again", "b", `{"user":"a"}`, "body"},
			{"underscores and body", "_a", `{"user":"b"}`, "header"}, {"both paths", "", `{"user":"a","metadata":{"session_id":"b"}}`, "body"},
			{"all", "a", `{"user":"b","metadata":{"session_id":"c"}}`, "header"},
		} {
			r := chat(tt.body)
			if id, underscores := strings.CutPrefix(tt.header, "_"); underscores {
				r = with(r, [2]string{"x_session_id", id})
			} else if id != "" {
				r = with(r, [2]string{"x-session-id", id})
			}
			g.do(r)
			lines := g.Logs()
			sessions[tt.what] = loggedSession(lines[len(lines)-1])
			if tt.same != "" && sessions[tt.what] != sessions[tt.same] || sessions[tt.what] == "" {
				t.Errorf("%s: %s is session %q, want that of %s: %v", name, tt.what, sessions[tt.what], tt.same, sessions)
			}
		}
		if sessions["header"] == sessions["body"] {
			t.Errorf("%s: two ids are one session", name)
		}
	}
}

// The scope is that of the headers, and the pool that of the route.
func TestSessionIDFromBodyInScopesAndPools(t *testing.T) {
	g := startReading(t, 2, true, `"pools":[
		{"name":"a","cluster":"a","replicas":["10.0.0.1:8000","10.0.0.2:8000"]},
		{"name":"b","cluster":"b","replicas":["10.0.1.1:8000","10.0.1.2:8000"]}],
		"session":{"body":["user"],"scope_headers":["x-tenant"]}`)
	send := func(cluster, tenant string) result {
		r := with(chat(`{"user":"s"}`), [2]string{"x-tenant", tenant})
		r.Cluster = cluster
		return g.do(r)
	}
	for _, want := range []string{"placed", "pinned", "pinned"} {
		for _, cluster := range []string{"a", "b"} {
			for _, tenant := range []string{"t1", "t2"} {
				if r := send(cluster, tenant); r.reason != want {
					t.Errorf("tenant %s in %s: %s, want %s", tenant, cluster, r.reason, want)
				}
			}
		}
	}
	// By header it is the same session.
	r := with(hosttest.Request{Cluster: "a"}, [2]string{"x-tenant", "t1"}, [2]string{"x-session-id", "s"})
	if got := g.do(r); got.reason != "pinned" {
		t.Errorf("by header: %s", got.reason)
	}
	if a, b := g.sessions("a"), g.sessions("b"); a != 2 || b != 2 {
		t.Errorf("%d and %d sessions", a, b)
	}
	// A cluster without a pool is the gateway's own.
	if got := g.Do(0, hosttest.Request{Cluster: "c", Headers: hostsim.Headers{{"content-type", "application/json"}}, Body: `{"user":"s"}`}); got.Status != 200 || got.Request.Value(targetHeader) != "" {
		t.Errorf("another cluster: %d, %q", got.Status, got.Request.Value(targetHeader))
	}
}

// A body is read as far as max_bytes, and the request waits no longer than for
// that: a gateway that is made to keep a body which outgrows its buffer answers 413.
// proxy-wasm/proxy-wasm-cpp-host#143.
func TestBodiesLargerThanWhatIsRead(t *testing.T) {
	g := startReading(t, 2, true, readingBodies+`,"body":{"max_bytes":4096}`)
	chunked := func(text string, n int) hosttest.Request {
		var chunks []string
		for ; len(text) > n; text = text[n:] {
			chunks = append(chunks, text[:n])
		}
		return chat(append(chunks, text)...)
	}
	for _, size := range []int{900 << 10, 1100 << 10, 20 << 20} {
		filler := strings.Repeat("x", size)
		for _, n := range []int{1000, 4096, 65536, 1 << 20} {
			if n < 65536 && size > 1<<20 {
				continue
			}
			for _, tt := range []struct{ body, want string }{
				{`{"user":"s","prompt":"` + filler + `"}`, "pinned"},
				{`{"prompt":"` + filler + `","user":"s"}`, "keyless"},
			} {
				if r := g.do(chat(`{"user":"s"}`)); r.Status != 200 {
					t.Fatal(r.Status)
				}
				r := g.do(chunked(tt.body, n))
				if r.Status != 200 || r.reason != tt.want || len(r.RequestBody) != len(tt.body) {
					t.Errorf("%d bytes by %d: %d %s, upstream got %d, want %s", len(tt.body), n, r.Status, r.reason, len(r.RequestBody), tt.want)
				}
			}
		}
	}
	// The last byte that is read counts, the next one does not.
	for over, want := range []string{"pinned", "keyless"} {
		body := `{"p":"` + strings.Repeat("x", 4096-len(`{"p":"","user":"s"`)+over) + `","user":"s"`
		if r := g.do(chunked(body+"}", 1000)); r.reason != want {
			t.Errorf("an id that ends at byte %d: %s, want %s", len(body), r.reason, want)
		}
	}
	// What has been found by then counts.
	if r := g.do(chunked(`{"user":"s","p":"`+strings.Repeat("x", 5000)+`","metadata":{"session_id":"t"}}`, 1000)); r.reason != "pinned" {
		t.Errorf("the second path: %s", r.reason)
	}
}

// Each byte is read once, and none behind the id.
func TestBodiesAreReadOnce(t *testing.T) {
	g := startReading(t, 1, true, readingBodies)
	calls := func() uint64 { return g.Counters().HostCalls["env.proxy_get_buffer_bytes"] }
	before := calls()
	g.do(chat(`{"messages":["`, strings.Repeat("x", 30_000), `"],"metadata":{"session_id":"s"},"tools":"`, strings.Repeat("x", 30_000), `"}`))
	if n := calls() - before; n != 4 { // 30,000 bytes are two pieces
		t.Errorf("%d reads", n)
	}
	before = calls()
	g.do(chat(`{"p":"`+strings.Repeat("x", 100_000), strings.Repeat("x", 100_000)+`"}`))
	if n := calls() - before; n != 65536/bodyPiece {
		t.Errorf("%d reads of a body that is larger than what is read", n)
	}
	before = calls()
	g.do(with(chat(`{"user":"x"}`, `{}`), [2]string{"x-session-id", "s"}))
	g.do(hosttest.Request{Body: `{"user":"x"}`})
	if n := calls() - before; n != 0 {
		t.Errorf("%d reads for requests that need none", n)
	}
}

// A body that ends in trailers has no last chunk.
func TestBodyThatEndsInTrailers(t *testing.T) {
	g := startReading(t, 1, true, readingBodies)
	for i, body := range []string{`{"user":"s"}`, `{"user":"s"}`, `{"other":1}`, `{"other":`} {
		s := g.Worker(0).NewStream()
		r := chat()
		if step, err := s.RequestHeaders(append(turnHeaders(""), r.Headers...), false); err != nil || step.Flow != hostsim.Wait {
			t.Fatalf("%v, %v", step.Flow, err)
		}
		if _, err := s.RequestBody([]byte(body), false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RequestTrailers(hostsim.Headers{{"a", "1"}}); err != nil {
			t.Fatal(err)
		}
		if s.Headers(hostsim.MapRequestHeaders).Value(targetHeader) == "" {
			t.Errorf("%s: no target", body)
		}
		if _, err := s.ResponseHeaders(hostsim.Headers{{":status", "200"}}, true); err != nil {
			t.Fatal(err)
		}
		want := []string{"placed", "pinned", "keyless", "keyless"}[i]
		if got := s.Headers(hostsim.MapResponseHeaders).Value("x-pinwheel-reason"); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
		g.end(s, hostsim.EndNormal)
	}
}

// A client's own choice of host is gone before the request waits.
func TestClientsDoNotSteerWhileTheyWait(t *testing.T) {
	g := startReading(t, 1, true, readingBodies)
	s := g.Worker(0).NewStream()
	headers := append(turnHeaders(""), [2]string{"content-type", "application/json"}, [2]string{targetHeader, "127.0.0.1:9901"})
	if _, err := s.RequestHeaders(headers, false); err != nil {
		t.Fatal(err)
	}
	if got := s.Headers(hostsim.MapRequestHeaders).Value(targetHeader); got != "" {
		t.Errorf("the client's choice stands: %q", got)
	}
	g.end(s, hostsim.EndClientGone)
}

// Requests that wait are no running requests of any replica, and leave nothing when
// their client goes.
func TestClientsThatLeaveWhileTheyWait(t *testing.T) {
	g := startReading(t, 2, true, readingBodies)
	for i := range 300 {
		var open []*hostsim.Stream
		for j := range 5 {
			s := g.Worker(i % 2).NewStream()
			if _, err := s.RequestHeaders(append(turnHeaders(""), [2]string{"content-type", "application/json"}), false); err != nil {
				t.Fatal(err)
			}
			if j%2 == 0 {
				if _, err := s.RequestBody([]byte(`{"messages":[`), false); err != nil {
					t.Fatal(err)
				}
			}
			open = append(open, s)
		}
		for j := range open {
			g.end(open[(j*3)%5], hostsim.EndReason(j%4))
		}
	}
	g.mustServe()
	g.Advance(3 * time.Second)
	g.mustRun(0)
	if n := g.Metric("pinwheel_errors_total.kind.body_late"); n != 0 {
		t.Errorf("%d requests resumed that were gone", n)
	}
	if n := g.sessions("default"); n != 0 {
		t.Errorf("%d sessions", n)
	}
}
