package plugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// mustServe fails unless every worker still serves clean requests and keeps their
// session.
func (g *gateway) mustServe() {
	g.t.Helper()
	for w := range g.Workers() {
		id := fmt.Sprint("clean-", w)
		home := g.on(w, turnOf(id)).replica
		for range 9 {
			if r := g.on(w, turnOf(id)); r.Status != 200 || r.reason != "pinned" || r.replica != home {
				g.t.Errorf("worker %d afterwards: %d %s %s, want a turn pinned to %s", w, r.Status, r.reason, r.replica, home)
			}
		}
		g.release(id)
	}
}

// ray-project/ray#63362: the header arrives under another spelling.
func TestSessionHeaderInAnySpelling(t *testing.T) {
	for config, other := range map[string]string{
		"": "keyless", `,"session":{"headers":["x-session-id"]}`: "keyless",
		`,"session":{"headers":["X-Session-ID","x-correlation-id"]}`: "pinned",
	} {
		g := startGateway(t, 2, twoReplicas+config)
		home := g.turn("s").replica
		for _, name := range []string{"X-Session-ID", "x-session-id", "X-SESSION-ID", "x_session_id", "X_SESSION_ID"} {
			for range g.Workers() {
				if r := g.keyless([2]string{name, "s"}); r.reason != "pinned" || r.replica != home {
					t.Errorf("%s%s: %s on %s, want pinned on %s", name, config, r.reason, r.replica, home)
				}
			}
		}
		if r := g.keyless([2]string{"x-correlation-id", "s"}); r.reason != other || other == "pinned" && r.replica != home {
			t.Errorf("x-correlation-id%s: %s on %s, want %s", config, r.reason, r.replica, other)
		}
		if n := g.sessions("default"); n != 1 {
			t.Errorf("%d open sessions, want 1", n)
		}
	}
}

func TestSessionHeadersAreAskedInOrder(t *testing.T) {
	g := startGateway(t, 2, threeReplicas+`,"session":{"headers":["x-session-id","x-correlation-id"]}`)
	first, second := g.turn("a").replica, g.keyless([2]string{"x-correlation-id", "b"}).replica
	for what, c := range map[string]struct {
		headers [][2]string
		want    string
	}{
		"both, the first counts":            {[][2]string{{"x-correlation-id", "b"}, {"x-session-id", "a"}}, first},
		"the first is empty":                {[][2]string{{"x-session-id", ""}, {"x-correlation-id", "b"}}, second},
		"the first is blank":                {[][2]string{{"x-session-id", " \t"}, {"x-correlation-id", "b"}}, second},
		"underscores come after all dashes": {[][2]string{{"x_session_id", "a"}, {"x-correlation-id", "b"}}, second},
		"underscores in order":              {[][2]string{{"x_correlation_id", "b"}, {"x_session_id", "a"}}, first},
	} {
		if r := g.keyless(c.headers...); r.reason != "pinned" || r.replica != c.want {
			t.Errorf("%s: %s on %s, want pinned on %s", what, r.reason, r.replica, c.want)
		}
	}
	if first == second {
		t.Error("two sessions on one of three replicas: the cases above tell nothing")
	}
}

// vllm-project/production-stack#735: a session setting that names no header means
// the default one. vllm-project/vime#98: an empty id is no id.
func TestEmptyAndBlankIDsAreKeyless(t *testing.T) {
	for _, name := range policyNames {
		g := startGateway(t, 2, twoReplicas+named(name)+`,"session":{}`)
		if r := g.keyless(); r.Status != 200 || r.reason != "keyless" {
			t.Errorf("%s: without the header: %d %s", name, r.Status, r.reason)
		}
		for _, id := range []string{"", " ", "\t", "  \t  "} {
			for range g.Workers() {
				if r := g.turn(id); r.Status != 200 || r.reason != "keyless" {
					t.Errorf("%s: id %q: %d %s, want keyless", name, id, r.Status, r.reason)
				}
			}
		}
		g.mustOpen(0, 0)
		if r := g.turn("s1"); r.reason != "placed" {
			t.Errorf("%s: x-session-id without configuration: %s, want placed", name, r.reason)
		}
		if !slices.Contains(pinless, name) {
			g.mustServe()
		}
	}
}

func TestWhitespaceAroundAnIDIsNotPartOfIt(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	home := g.turn("a b").replica
	for _, id := range []string{" a b", "a b ", "\ta b \t"} {
		if r := g.turn(id); r.reason != "pinned" || r.replica != home {
			t.Errorf("id %q: %s on %s, want pinned on %s", id, r.reason, r.replica, home)
		}
	}
	if r := g.turn("ab"); r.reason != "placed" {
		t.Errorf("whitespace within an id is ignored: ab is %s", r.reason)
	}
}

func TestOfADuplicateHeaderTheFirstValueCounts(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	home := g.turn("one").replica
	if r := g.turn("one", [2]string{"x-session-id", "two"}); r.reason != "pinned" || r.replica != home {
		t.Errorf("%s on %s, want pinned on %s", r.reason, r.replica, home)
	}
	if r := g.turn("two"); r.reason != "placed" {
		t.Errorf("the second value of a header was pinned: %s", r.reason)
	}
	g.turn("one", [2]string{"x-session-id", "one"}) // the same twice is one
	g.turn("one", [2]string{"x-session-id", " "})
	if g.Advance(2 * tick); g.errors(faultRepeatedHeader) != 1 {
		t.Errorf("%d requests with two ids reported, want 1", g.errors(faultRepeatedHeader))
	}
	g.mustServe()
}

// smg-project/smg#2199: a key too long for one parser was taken by the next, and
// cut ones merged sessions.
func TestIDLengths(t *testing.T) {
	for _, name := range policyNames {
		for _, c := range []struct {
			limit string
			most  int
		}{{"", 256}, {`,"session":{"max_id_bytes":65536}`, 65536}, {`,"session":{"max_id_bytes":8}`, 8}} {
			g := startGateway(t, 2, twoReplicas+named(name)+c.limit)
			for _, n := range []int{1, 8, 9, 128, 129, 255, 256, 257, 8192, 65536, 65537, 300_000} {
				id := strings.Repeat("x", n)
				first, second := g.turn(id), g.turn(id)
				want := [2]string{"placed", "pinned"}
				if slices.Contains(pinless, name) {
					want[1] = "placed"
				}
				if n > c.most {
					want = [2]string{"oversized", "oversized"}
				}
				if got := [2]string{first.reason, second.reason}; got != want || first.Status != 200 || second.Status != 200 {
					t.Errorf("%s, limit %d, id of %d bytes: %v, want %v", name, c.most, n, got, want)
				}
				g.release(id)
			}
			g.mustOpen(0, 0)
			if r := g.turn("clean"); r.Status != 200 || r.reason != "placed" {
				t.Errorf("%s, limit %d: afterwards %d %s", name, c.most, r.Status, r.reason)
			}
		}
	}
}

// smg-project/smg#2199 again: the whole id counts, not its beginning.
func TestLongIDsThatBeginAlikeAreDistinct(t *testing.T) {
	for _, name := range policyNames {
		g := startGateway(t, 2, twoReplicas+named(name)+`,"session":{"max_id_bytes":8192},"decision_log":{"enabled":true}`)
		for _, same := range []int{128, 255, 256, 4096} {
			head := strings.Repeat("y", same)
			a, b := g.turn(head+"a"), g.turn(head+"b")
			lines := g.Logs()
			first, second := loggedSession(lines[len(lines)-2]), loggedSession(lines[len(lines)-1])
			if a.reason != "placed" || b.reason != "placed" || first == second || first == "" || second == "" {
				t.Errorf("%s: two ids equal in %d bytes: %s and %s, sessions %q and %q", name, same, a.reason, b.reason, first, second)
			}
		}
		if name == "sticky_least_loaded" {
			g.mustOpen(4, 4)
		}
	}
}

// loggedSession is the session that a line of the decision log tells of.
func loggedSession(line hostsim.LogEntry) string {
	_, hash, _ := strings.Cut(line.Message, `"session":"`)
	hash, _, _ = strings.Cut(hash, `"`)
	return hash
}

// proxy-wasm/proxy-wasm-rust-sdk#25: a header that is not UTF-8 killed the worker.
func TestIDsAreBytes(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	ids := []string{"\xc0\xa7\xc0\xa2", "\xff\xfe\x00\x01", "sess\xc3", "\x01\x02", `"quoted\`, "💥", "a%00b"}
	for b := 0x80; b <= 0xff; b++ {
		ids = append(ids, string([]byte{byte(b)}))
	}
	homes := map[string]string{}
	for _, id := range ids {
		r := g.turn(id)
		if r.Status != 200 || r.reason != "placed" {
			t.Errorf("first turn of % x: %d %s", id, r.Status, r.reason)
		}
		homes[id] = r.replica
	}
	for _, id := range ids {
		for w := range g.Workers() {
			if r := g.on(w, turnOf(id)); r.reason != "pinned" || r.replica != homes[id] {
				t.Errorf("% x on worker %d: %s on %s, want pinned on %s", id, w, r.reason, r.replica, homes[id])
			}
		}
	}
	for _, id := range ids {
		if r := g.do(hosttest.Request{Method: "DELETE", Path: "/finish_session", Headers: hostsim.Headers{{"x-session-id", id}}}); r.Status != 200 {
			t.Errorf("release of % x: %d %s", id, r.Status, r.ResponseBody)
		}
	}
	g.mustOpen(0, 0)
	g.mustServe()
}

// proxy-wasm/proxy-wasm-rust-sdk#25, the other half: such bytes in a header that
// is none of ours.
func TestOtherHeadersMayHoldAnyBytes(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	home := g.turn("s").replica
	for _, name := range []string{"user-agent", "x-forwarded-for", "cookie", "x-tenant-id", "\xc0\xa7"} {
		for w := range g.Workers() {
			r := g.on(w, turnOf("s", [2]string{name, "\xc0\xa7\xc0\xa2"}, [2]string{name, string(make([]byte, 9000))}))
			if r.Status != 200 || r.reason != "pinned" || r.replica != home {
				t.Errorf("%q: %d %s on %s, want pinned on %s", name, r.Status, r.reason, r.replica, home)
			}
		}
	}
	g.mustServe()
}

func TestPresetAgents(t *testing.T) {
	g := startGateway(t, 2, threeReplicas+`,"session":{"preset":"agents"}`)
	order := presets["agents"]
	for i, name := range order {
		if r := g.keyless([2]string{name, fmt.Sprint("id-", i)}); r.reason != "placed" {
			t.Errorf("%s alone names no session: %s", name, r.reason)
		}
	}
	var all [][2]string
	for i := len(order) - 1; i >= 0; i-- {
		all = append(all, [2]string{order[i], fmt.Sprint("id-", i)})
		want := g.keyless([2]string{order[i], fmt.Sprint("id-", i)}).replica
		if r := g.keyless(all...); r.reason != "pinned" || r.replica != want {
			t.Errorf("%s does not come before those after it: %s on %s, want %s", order[i], r.reason, r.replica, want)
		}
	}
	g.do(hosttest.Request{Method: "POST", Path: "/finish_session", Headers: all})
	if r := g.keyless([2]string{order[0], "id-0"}); r.reason != "placed" {
		t.Errorf("a release reads other headers than a turn: %s is still %s", order[0], r.reason)
	}
}

// BerriAI/litellm#33126: ids collided across callers.
func TestScopeHeadersSeparateTenants(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"session":{"scope_headers":["x-tenant-id","x-team","authorization"]}`)
	scopes := [][][2]string{
		{{"authorization", "Bearer a"}}, {{"authorization", "Bearer b"}}, {{"x-tenant-id", "Bearer a"}},
		{{"x-tenant-id", "a"}}, {{"x-tenant-id", "b"}}, {},
		{{"x-tenant-id", "ab"}, {"x-team", "c"}}, {{"x-tenant-id", "a"}, {"x-team", "bc"}},
		{{"x-tenant-id", ""}, {"x-team", "a"}}, {{"x-tenant-id", "\xff\x00"}},
	}
	for _, scope := range scopes {
		if r := g.turn("1", scope...); r.reason != "placed" {
			t.Errorf("scope %q shares a session with another: %s", scope, r.reason)
		}
	}
	for _, scope := range scopes {
		if r := g.turn("1", scope...); r.reason != "pinned" {
			t.Errorf("scope %q: %s, want pinned", scope, r.reason)
		}
	}
	release := hosttest.Request{Method: "POST", Path: "/finish_session?session_id=1", Headers: scopes[0]}
	if r := g.do(release); r.Status != 200 {
		t.Errorf("release: %d", r.Status)
	}
	for i, scope := range scopes {
		want := "pinned"
		if i == 0 {
			want = "placed"
		}
		if r := g.turn("1", scope...); r.reason != want {
			t.Errorf("after the release in scope %q, scope %q is %s, want %s", scopes[0], scope, r.reason, want)
		}
	}
}

// BerriAI/litellm#33126, the other half: one session was two by the spellings of its
// model. The model is no part of the key, under no policy that pins and wherever the
// id stands.
func TestTheModelIsNoPartOfASession(t *testing.T) {
	for _, name := range policyNames {
		if slices.Contains(pinless, name) {
			continue
		}
		g := startReading(t, 2, true, readingBodies+named(name))
		ask := func(model string, byHeader bool) result {
			if byHeader {
				return g.do(with(chat(`{"model":"`+model+`","messages":[{"content":"hello"}]}`), sessionHeader("s")))
			}
			return g.do(chat(`{"model":"` + model + `","user":"s","messages":[{"content":"hello"}]}`))
		}
		home := ask("m", true).replica
		for i := range 8 {
			if r := ask([]string{"m(high)", "m"}[i%2], i%4 < 2); r.reason != "pinned" || r.replica != home {
				t.Errorf("%s: turn %d: %s on %s, want pinned on %s", name, i, r.reason, r.replica, home)
			}
		}
		if n := g.sessions("default"); n != 1 {
			t.Errorf("%s: %d sessions, want 1", name, n)
		}
		g.release("s")
		g.mustOpen(0, 0, 0)
	}
}

const twoPools = `"pools":[{"name":"p1","cluster":"c1","replicas":["10.0.0.1:8000","10.0.0.2:8000"]},` +
	`{"name":"p2","cluster":"c2","replicas":["10.0.1.1:8000","10.0.1.2:8000"]}]`

func in(cluster string, r hosttest.Request) hosttest.Request {
	r.Cluster = cluster
	return r
}

// BerriAI/litellm#33126, for clusters: one id in two pools keeps two pins.
func TestOneIDInTwoPools(t *testing.T) {
	g := startGateway(t, 2, twoPools)
	release := hosttest.Request{Method: "POST", Path: "/finish_session?session_id=s"}
	home := map[string]string{}
	for _, c := range []string{"c1", "c2"} {
		r := g.do(in(c, turnOf("s")))
		if home[c] = r.replica; r.reason != "placed" || r.replica[:len("10.0.0.")] != map[string]string{"c1": "10.0.0.", "c2": "10.0.1."}[c] {
			t.Errorf("%s: %s on %s", c, r.reason, r.replica)
		}
	}
	for _, c := range []string{"c1", "c2"} {
		for range g.Workers() {
			if r := g.do(in(c, turnOf("s"))); r.reason != "pinned" || r.replica != home[c] {
				t.Errorf("%s: %s on %s, want pinned on %s", c, r.reason, r.replica, home[c])
			}
		}
	}
	g.do(in("c1", release))
	if one, two := g.sessions("p1"), g.sessions("p2"); one != 0 || two != 1 {
		t.Errorf("a release by cluster c1 leaves %d and %d sessions, want 0 and 1", one, two)
	}
	g.do(in("c1", release))
	if one, two := g.sessions("p1"), g.sessions("p2"); one != 0 || two != 0 {
		t.Errorf("a release by a route whose pool has no such session leaves %d and %d, want none", one, two)
	}
	g.do(in("c1", turnOf("s")))
	g.do(in("c2", turnOf("s")))
	g.do(release)
	if one, two := g.sessions("p1"), g.sessions("p2"); one != 0 || two != 0 {
		t.Errorf("a release by a route of no pool leaves %d and %d sessions, want none", one, two)
	}
}
