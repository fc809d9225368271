//go:build peer

package vllmrouter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// pair is both routers, each before the same replicas, with nothing open.
type pair struct {
	t        *testing.T
	replicas []*replica
	all      []string
	peer     *peer
	ours     *pinwheel
	markers  int
}

// startPair starts both with the first of n replicas as members. extra goes into Pinwheel's configuration, a policy in it
// to both, env to vllm-router.
func startPair(t *testing.T, n, members int, extra map[string]any, env ...string) *pair {
	replicas := openReplicas(t, n)
	all := addresses(replicas)
	policy := "sticky_least_loaded"
	config := map[string]any{"debug_headers": true}
	for k, v := range extra {
		config[k] = v
		if k == "policy" {
			policy = v.(string)
		}
	}
	return &pair{t: t, replicas: replicas, all: all, peer: startPeer(t, policy, replicas, all[:members], env...),
		ours: startPinwheel(t, replicas, all[:members], config)}
}

// members is a set of the replicas at those positions, all healthy or none.
func (p *pair) members(healthy bool, positions ...int) map[string]bool {
	m := map[string]bool{}
	for _, i := range positions {
		m[p.all[i]] = healthy
	}
	return m
}

func (p *pair) set(members map[string]bool) {
	p.peer.set(members)
	p.ours.set(members)
}

// on sends a request to one of the two, which must answer.
func (p *pair) on(r *router, method, path, body string, headers ...[2]string) answer {
	p.t.Helper()
	a, err := r.do(method, path, body, headers...)
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

// turn is a turn of a session that must be served.
func (p *pair) turn(r *router, id string) answer {
	p.t.Helper()
	a := p.on(r, "POST", chat, prompt, [2]string{"X-Session-Id", id})
	if a.status != 200 || a.replica == "" {
		p.t.Fatalf("a turn of %s: %+v", id, a)
	}
	return a
}

// theyKnow reports whether vllm-router has opened a session of that id: whether its log says so before it says that a
// later one was opened.
func (p *pair) theyKnow(id string) bool {
	p.t.Helper()
	p.markers++
	marker := fmt.Sprint("marker", p.markers)
	p.turn(&p.peer.router, marker)
	eventually(p.t, "vllm-router logs a placement", func() string {
		if _, ok := p.peer.log.of(marker); !ok {
			return "no line yet"
		}
		return ""
	})
	_, known := p.peer.log.of(id)
	return known
}

// weKnow reports whether Pinwheel has a session of that id. If it had none, it has one now.
func (p *pair) weKnow(id string) bool {
	p.t.Helper()
	return p.turn(&p.ours.router, id).reason == "pinned"
}

// rules are the differences that README.md lists, each shown on both sides.
var rules = []struct {
	name string
	show func(*testing.T)
}{
	{"ties", ruleTies},
	{"joining", ruleJoining},
	{"generation", ruleGeneration},
	{"nobody healthy", ruleNobodyHealthy},
	{"coming back", ruleComingBack},
	{"session headers", ruleSessionHeaders},
	{"repeated header", ruleRepeatedHeader},
	{"underscores", ruleUnderscores},
	{"long ids", ruleLongIDs},
	{"keyless", ruleKeyless},
	{"all paths", ruleAllPaths},
	{"release", ruleRelease},
	{"ids in bodies", ruleBodies},
	{"idle timeout", ruleIdleTimeout},
}

// What README.md says of differences is what the real router and Pinwheel do.
func TestRules(t *testing.T) {
	var shown []string
	for _, r := range rules {
		shown = append(shown, r.name)
		t.Run(strings.ReplaceAll(r.name, " ", "_"), r.show)
	}
	var told []string
	for _, row := range tableUnder(t, "## Where they differ") {
		told = append(told, row[0])
	}
	if !slices.Equal(told, shown) {
		t.Errorf("README.md tells the rules %q, tests show %q", told, shown)
	}
}

// One session after the other, each finished before the next: with the same id they all meet on one replica there, and
// take turns here.
func ruleTies(t *testing.T) {
	p := startPair(t, 3, 3, nil)
	theirs, ours := map[string]int{}, map[string]int{}
	for range 12 {
		for served, r := range map[*map[string]int]*router{&theirs: &p.peer.router, &ours: &p.ours.router} {
			(*served)[p.turn(r, "again").replica]++
			if err := r.finish("again"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(theirs) != 1 {
		t.Errorf("vllm-router: %v, want one replica", theirs)
	}
	for _, a := range p.all {
		if ours[a] != 4 {
			t.Errorf("Pinwheel: %v, want 4 on each replica", ours)
			break
		}
	}
}

// Four sessions on each of three replicas; a fourth replica comes, and four new sessions.
func ruleJoining(t *testing.T) {
	p := startPair(t, 4, 3, nil)
	theirs, ours := 0, 0
	for i := range 16 {
		if i == 12 {
			p.set(p.members(true, 0, 1, 2, 3))
		}
		id := fmt.Sprint("s", i)
		if p.turn(&p.peer.router, id).replica == p.all[3] {
			theirs++
		}
		if p.turn(&p.ours.router, id).replica == p.all[3] {
			ours++
		}
	}
	if theirs != 4 || ours != 2 {
		t.Errorf("of four sessions the newcomer gets %d in vllm-router, want 4, and %d in Pinwheel, want 2", theirs, ours)
	}
}

func ruleGeneration(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	theirHome, ourHome := p.turn(&p.peer.router, "s").replica, p.turn(&p.ours.router, "s").replica
	for _, side := range []struct {
		r    *router
		set  func(map[string]bool)
		home string
	}{{&p.peer.router, p.peer.set, theirHome}, {&p.ours.router, p.ours.set, ourHome}} {
		rest := p.members(true, 0, 1)
		delete(rest, side.home)
		side.set(rest)
		side.set(p.members(true, 0, 1))
	}
	if a := p.turn(&p.peer.router, "s"); a.replica != theirHome {
		t.Errorf("vllm-router moves the session to %s from %s", a.replica, theirHome)
	}
	if a := p.turn(&p.ours.router, "s"); a.reason != "failover_removed" {
		t.Errorf("Pinwheel: %+v, want failover_removed", a)
	}
}

func ruleNobodyHealthy(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	p.set(p.members(false, 0, 1))
	if a := p.on(&p.peer.router, "POST", chat, prompt, [2]string{"X-Session-Id", "s"}); a.status != 503 {
		t.Errorf("vllm-router: %+v, want 503", a)
	}
	if a := p.on(&p.ours.router, "POST", chat, prompt, [2]string{"X-Session-Id", "s"}); a.status != 200 {
		t.Errorf("Pinwheel: %+v, want 200", a)
	}
}

// 60 sessions by consistent_hash on four replicas, of which one fails and comes back. Both spread its sessions over all
// others; then they return there, and stay here.
func ruleComingBack(t *testing.T) {
	p := startPair(t, 4, 4, map[string]any{"policy": "consistent_hash"})
	for _, side := range []struct {
		name    string
		r       *router
		set     func(map[string]bool)
		returns bool
	}{{"vllm-router", &p.peer.router, p.peer.set, true}, {"Pinwheel", &p.ours.router, p.ours.set, false}} {
		home := p.all[3]
		moved := map[string]string{}
		for i := range 60 {
			if id := fmt.Sprint("s", i); p.turn(side.r, id).replica == home {
				moved[id] = ""
			}
		}
		ill := p.members(true, 0, 1, 2, 3)
		ill[home] = false
		side.set(ill)
		to := map[string]int{}
		for id := range moved {
			moved[id] = p.turn(side.r, id).replica
			to[moved[id]]++
		}
		if len(to) != 3 || to[home] > 0 {
			t.Fatalf("%s: %d sessions of %s go to %v, want three replicas", side.name, len(moved), home, to)
		}
		side.set(p.members(true, 0, 1, 2, 3))
		for id, at := range moved {
			want := at
			if side.returns {
				want = home
			}
			if got := p.turn(side.r, id).replica; got != want {
				t.Errorf("%s: %s was on %s, then on %s, now on %s, want %s", side.name, id, home, at, got, want)
			}
		}
	}
}

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

func ruleKeyless(t *testing.T) {
	p := startPair(t, 3, 3, nil)
	theirs, ours := map[string]int{}, map[string]int{}
	for range 12 {
		theirs[p.on(&p.peer.router, "POST", chat, prompt).replica]++
		ours[p.on(&p.ours.router, "POST", chat, prompt).replica]++
	}
	if len(theirs) != 1 {
		t.Errorf("vllm-router: %v, want all on one replica", theirs)
	}
	if len(ours) != 3 {
		t.Errorf("Pinwheel: %v, want all replicas", ours)
	}
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
