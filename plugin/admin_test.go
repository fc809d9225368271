package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

const adminSecret = "open sesame"

// withAdmin is the configuration that turns the endpoint on.
const withAdmin = `,"admin":{"secret":"` + adminSecret + `"}`

var right = [2]string{"x-pinwheel-secret", adminSecret}

// orderAnswer is the JSON of the answer to an order.
type orderAnswer struct {
	Status, Error, Replica, State string
	OpenSessions                  int `json:"open_sessions"`
	EndedSessions                 int `json:"ended_sessions"`
	Inflight                      int
	Drain                         bool
	Empty                         *bool
}

// ordered sends an operator's request, its path and query after the configured
// path, and fails unless the plugin answers it itself with that status.
func (g *gateway) ordered(method, rest string, status int, headers ...[2]string) (a orderAnswer) {
	g.t.Helper()
	text := g.operator(method, "/pinwheel/"+rest, status, append(headers, right)...)
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		g.t.Errorf("%s %s: %v in %q", method, rest, err, text)
	}
	if want := map[bool]string{true: "ok", false: "error"}[status == 200]; a.Status != want {
		g.t.Errorf("%s %s: %q", method, rest, text)
	}
	return a
}

func (g *gateway) operator(method, path string, status int, headers ...[2]string) (body string) {
	g.t.Helper()
	res := g.do(hosttest.Request{Method: method, Path: path, Headers: headers})
	if res.Local == nil || len(res.Request) != 0 || res.Status != status {
		g.t.Errorf("%s %s: status %d (local %v, forwarded %v), want %d from the plugin: %s", method, path, res.Status, res.Local != nil, len(res.Request) != 0, status, res.ResponseBody)
	}
	if got := res.Response.Value("content-type"); got != "application/json" {
		g.t.Errorf("%s %s: content-type %q", method, path, got)
	}
	return res.ResponseBody
}

func TestAdminRefusals(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+withAdmin)
	g.turn("a")
	for _, c := range []struct {
		method, rest string
		status       int
		says         string
	}{
		{"POST", "drain", 400, "no replica: give ?replica=ADDRESS"},
		{"POST", "drain?", 400, "no replica"},
		{"POST", "drain?replica=", 400, "no replica"},
		{"POST", "undrain", 400, "no replica"},
		{"POST", "drain?replica=10.0.0.9:8000", 404, "no replica 10.0.0.9:8000; there are 10.0.0.1:8000, 10.0.0.2:8000"},
		{"POST", `drain?replica="\`, 404, `no replica "\; there are`},
		{"POST", "drain?replica=10.0.0.1:8000&pool=b", 404, "no pool b; there are default"},
		{"POST", "drain?replica=10.0.0.1:8000&pol=b", 400, "pol=b is not known here: give ?replica=ADDRESS, and"},
		// It would reset all of them.
		{"POST", "reset?replica=10.0.0.1:8000", 400, "replica=10.0.0.1:8000 is not known here: give ?pool=NAME"},
		{"POST", "reset?pool=", 400, "pool= is not known here"},
		// One of the two would be passed over.
		{"POST", "drain?replica=10.0.0.1:8000&replica=10.0.0.2:8000", 400, "replica is given twice"},
		{"POST", "reset?pool=default&pool=default", 400, "pool is given twice"},
		{"POST", "reset?pool=b", 404, "no pool b"},
		{"GET", "reset", 405, "/reset is asked for by POST"},
		{"DELETE", "drain?replica=10.0.0.1:8000", 405, "by POST"},
		{"POST", "status", 405, "by GET"},
		{"PUT", "status", 405, "by GET"},
		{"GET", "", 404, "no / here; there are /status, /drain, /undrain and /reset"},
		{"GET", "status/", 404, "no /status/ here"},
		{"POST", "status/drain?replica=10.0.0.1:8000", 404, ""},
		{"POST", "Drain?replica=10.0.0.1:8000", 404, ""},
		{"GET", "../v1/models", 404, ""},
	} {
		if a := g.ordered(c.method, c.rest, c.status); !strings.Contains(a.Error, c.says) {
			t.Errorf("%s %s: %q, want %q in it", c.method, c.rest, a.Error, c.says)
		}
	}
	g.operator("GET", "/pinwheel", 404, right)
	if res := g.do(hosttest.Request{Method: "HEAD", Path: "/pinwheel/status", Headers: hostsim.Headers{right}}); res.Status != 405 || res.ResponseBody != "" {
		t.Errorf("HEAD: %d %q", res.Status, res.ResponseBody)
	}
	res := g.do(hosttest.Request{Method: "GET", Path: "/pinwheel/drain", Headers: hostsim.Headers{right}})
	if got := res.Response.Value("allow"); got != "POST" {
		t.Errorf("allow: %q", got)
	}
	if r := g.turn("a"); r.reason != "pinned" {
		t.Errorf("a refused order had an effect: %s", r.reason)
	}
	g.turn("b")
	g.mustOpen(1, 1)
}

func TestAdminAsksForItsSecret(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"release":{"secret":"other"},"admin":{"secret":"se cret","secret_header":"X-Ops-Secret"}`)
	g.turn("a")
	for what, h := range map[string][2]string{
		"none":               {"x-other", "se cret"},
		"the release's":      {"x-pinwheel-secret", "other"},
		"in its header":      {"x-pinwheel-secret", "se cret"},
		"empty":              {"x-ops-secret", ""},
		"shorter":            {"x-ops-secret", "se cre"},
		"longer":             {"x-ops-secret", "se cret "},
		"another's":          {"x-ops-secret", "other"},
		"another first byte": {"x-ops-secret", "ae cret"},
		"another last byte":  {"x-ops-secret", "se creu"},
	} {
		for _, path := range []string{"/status", "/drain?replica=10.0.0.1:8000", "/undrain?replica=10.0.0.1:8000", "/reset", "/nothing", ""} {
			for _, method := range []string{"GET", "POST"} {
				if body := g.operator(method, "/pinwheel"+path, 401, h); body != `{"status":"error","error":"missing or wrong x-ops-secret"}`+"\n" {
					t.Errorf("secret %s, %s: %s", what, path, body)
				}
			}
		}
	}
	g.mustOpen(counts(g)...)
	for _, c := range g.record("default").List {
		if c.Drained {
			t.Errorf("%s is drained by nobody", c.Address)
		}
	}
	g.operator("GET", "/pinwheel/status", 200, [2]string{"X-Ops-Secret", "se cret"})
	g.released(post("/finish_session?session_id=a", [2]string{"x-pinwheel-secret", "other"}), 200)
}

func TestAdminIsOffUnlessConfigured(t *testing.T) {
	for what, config := range map[string]string{"off": "", "elsewhere": `,"admin":{"path":"/ops"}`} {
		g := startGateway(t, 1, twoReplicas+config)
		for _, path := range []string{"/pinwheel/status", "/pinwheel/drain?replica=10.0.0.1:8000", "/opsy", "/op", "/v1/ops/status"} {
			if r := g.do(post(path, sessionHeader("a"))); r.Local != nil || r.Request.Value(":path") != path {
				t.Errorf("%s: %s is answered by the plugin", what, path)
			}
		}
		if what == "elsewhere" {
			g.operator("GET", "/ops/status", 200) // without a secret none is asked for
			if !strings.Contains(strings.Join(g.Messages(hostsim.LogWarn), "\n"), "admin.secret is empty: whoever reaches /ops may drain and reset") {
				t.Error("no warning that everybody may drain")
			}
		}
	}
}

func TestDrainOverAllWorkers(t *testing.T) {
	g := startGateway(t, 3, twoReplicas+withAdmin)
	const a, b = "10.0.0.1:8000", "10.0.0.2:8000"
	homes := map[string]string{}
	for _, id := range []string{"s1", "s2", "s3", "s4"} {
		homes[id] = g.turn(id).replica
	}
	running := g.begin(0, "s1")
	if replicaOf(running) != a {
		g.end(running, hostsim.EndNormal)
		running = g.begin(0, "s2")
	}
	g.Advance(2 * tick)
	for range 3 { // the same on each worker, and twice
		got := g.ordered("POST", "drain?replica="+a, 200)
		if got.Empty == nil || *got.Empty || got != (orderAnswer{"ok", "", a, "draining", 2, 0, 1, true, got.Empty}) {
			t.Errorf("drain: %+v", got)
		}
	}
	for id, home := range homes {
		if r := g.turn(id); r.reason != "pinned" || r.replica != home {
			t.Errorf("%s moved: %s on %s", id, r.reason, r.replica)
		}
	}
	for _, id := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
		if r := g.turn(id); r.replica != b || strings.Contains(r.target, a) {
			t.Errorf("a new session was sent to %s", r.target)
		}
		if r := g.keyless(); r.replica != b {
			t.Errorf("a keyless request was sent to %s", r.target)
		}
	}
	// An update is applied anew by each worker.
	if err := g.reconfigure(`"replicas":[{"address":"` + a + `","weight":2},"` + b + `","10.0.0.3:8000"]` + withAdmin); err != nil {
		t.Fatal(err)
	}
	if r := g.turn("n7"); r.replica == a {
		t.Error("the update ended the drain")
	}
	g.end(running, hostsim.EndNormal)
	g.Advance(2 * tick)
	for id, home := range homes {
		if home == a {
			g.release(id)
		}
	}
	got := g.ordered("POST", "drain?replica="+a, 200)
	if got.Empty == nil || !*got.Empty || got.OpenSessions+got.Inflight != 0 {
		t.Errorf("after the last release: %+v", got)
	}
	got = g.ordered("POST", "undrain?replica="+a, 200)
	if got.Empty != nil || got.Drain || got.State != "active" {
		t.Errorf("undrain: %+v", got)
	}
	if r := g.turn("n8"); r.replica != a {
		t.Errorf("a new session went to %s", r.replica)
	}
}

func TestADrainSurvivesTheVMsThatKnowOfIt(t *testing.T) {
	g := startWith(t, hosttest.Options{Workers: 2, AllowTraps: true, Adjust: func(c *hostsim.Config) {
		c.FailurePolicy = hostsim.FailReload
	}}, twoReplicas+withAdmin)
	const a = "10.0.0.1:8000"
	g.ordered("POST", "drain?replica="+a, 200)
	for w := range g.Workers() {
		g.crash(g.Worker(w), func() { g.Do(w, turnOf("poison")) })
	}
	g.Advance(2 * tick)
	for w := range g.Workers() {
		for i := range 4 {
			if r := g.on(w, turnOf(fmt.Sprint("s", w, i))); r.Status != 200 || r.replica == a {
				t.Errorf("after the crashes: %d on %s", r.Status, r.replica)
			}
		}
	}
	if got := g.ordered("POST", "undrain?replica="+a, 200); got.State != "active" {
		t.Errorf("%+v", got)
	}
}

// The same address in two pools is drained in both, or in the one that is named.
func TestDrainOfPools(t *testing.T) {
	g := startGateway(t, 1, `"pools":[
		{"name":"a","cluster":"ca","replicas":["10.0.0.1:1","10.0.0.2:1"]},
		{"name":"b","cluster":"cb","replicas":["10.0.0.1:1","[fd00::2]:1"]}]`+withAdmin)
	drained := func() (which string) {
		for _, pool := range []string{"a", "b"} {
			for _, c := range g.record(pool).List {
				if c.Drained {
					which += pool + " " + c.Address + ", "
				}
			}
		}
		return which
	}
	for _, step := range []struct{ order, want string }{
		{"drain?replica=10.0.0.1:1&pool=b", "b 10.0.0.1:1, "},
		{"drain?replica=10.0.0.1:1", "a 10.0.0.1:1, b 10.0.0.1:1, "},
		{"undrain?pool=a&replica=10.0.0.1:1", "b 10.0.0.1:1, "},
		{"undrain?replica=10.0.0.1%3A1", ""},
		{"drain?replica=%5BFD00:0::2%5D:1", "b [fd00::2]:1, "},
		{"drain?replica=10.0.0.2:1", "a 10.0.0.2:1, b [fd00::2]:1, "},
	} {
		g.ordered("POST", step.order, 200)
		if got := drained(); got != step.want {
			t.Errorf("%s: drained are %q, want %q", step.order, got, step.want)
		}
	}
	a := g.ordered("POST", "drain?replica=10.0.0.2:1&pool=b", 404)
	if want := "no replica 10.0.0.2:1; there are 10.0.0.1:1, [fd00::2]:1"; a.Error != want {
		t.Errorf("%q, want %q", a.Error, want)
	}
}

func TestResetOfPools(t *testing.T) {
	g := startGateway(t, 2, `"pools":[
		{"name":"a","cluster":"ca","replicas":["10.0.0.1:1","10.0.0.2:1"]},
		{"name":"b","cluster":"cb","replicas":["10.0.0.1:1","10.0.0.2:1"]}]`+withAdmin)
	turn := func(cluster, id, want string) {
		t.Helper()
		r := turnOf(id)
		r.Cluster = cluster
		if got := g.do(r); got.reason != want {
			t.Errorf("%s in %s: %s, want %s", id, cluster, got.reason, want)
		}
	}
	for _, id := range []string{"s1", "s2", "s3"} {
		turn("ca", id, "placed")
		turn("cb", id, "placed")
	}
	for _, step := range []struct {
		order string
		ended int
	}{{"reset?pool=a", 3}, {"reset?pool=a", 0}, {"reset", 3}} {
		if got := g.ordered("POST", step.order, 200); got.EndedSessions != step.ended {
			t.Errorf("%s: %+v, want %d ended", step.order, got, step.ended)
		}
		g.Advance(2 * tick)
		if step.ended == 3 && strings.Contains(step.order, "pool") {
			turn("cb", "s1", "pinned")
		}
	}
	turn("ca", "s1", "placed")
	turn("cb", "s1", "placed")
	g.Advance(40 * tick) // a sweep of all shards
	for _, pool := range []string{"a", "b"} {
		r := g.record(pool)
		if len(r.List) != 2 || r.Open() != 1 || r.Placements != 1 {
			t.Errorf("pool %s after a sweep: %+v", pool, r.Replicas)
		}
	}
	if n := g.Metric("pinwheel_expired_total.pool.a"); n != 0 {
		t.Errorf("%d sessions that a reset ended were counted as expired", n)
	}
}

// A session that a reset ended is not the one that a release means.
func TestReleaseAfterAReset(t *testing.T) {
	g := startGateway(t, 1, `"pools":[{"name":"a","cluster":"ca","replicas":["10.0.0.1:1"]},{"name":"b","cluster":"cb","replicas":["10.0.0.1:1"]}]`+withAdmin)
	for _, cluster := range []string{"ca", "cb"} {
		r := turnOf("s")
		r.Cluster = cluster
		g.do(r)
	}
	g.ordered("POST", "reset?pool=a", 200)
	r := post("/finish_session?session_id=s")
	r.Cluster = "ca"
	g.released(r, 200)
	if a, b := g.record("a"), g.record("b"); a.Open()+b.Open() != 0 {
		t.Errorf("still open: %d and %d", a.Open(), b.Open())
	}
	g.Advance(2 * tick)
	if a, b := g.Metric("pinwheel_released_total.pool.a"), g.Metric("pinwheel_released_total.pool.b"); a != 0 || b != 1 {
		t.Errorf("released %d and %d, want 0 and 1", a, b)
	}
}

// What runs when the pool is reset runs on, where it was, and is counted.
func TestResetWhileTurnsRun(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+withAdmin)
	s := g.begin(0, "a")
	home := replicaOf(s)
	g.Advance(2 * tick)
	g.ordered("POST", "reset", 200)
	g.Advance(3 * tick)
	if got := g.gauge("inflight", home); got != 1 {
		t.Errorf("%d running requests on %s, want 1", got, home)
	}
	if got := g.gauge("sessions", home); got != 0 {
		t.Errorf("%d open sessions on %s, want 0", got, home)
	}
	if step, err := s.ResponseHeaders(hostsim.Headers{{":status", "200"}}, true); err != nil || !step.End {
		t.Errorf("the running turn does not complete: %+v, %v", step, err)
	}
	if got := s.Headers(hostsim.MapResponseHeaders).Value("x-pinwheel-replica"); got != home {
		t.Errorf("the client is told %q, want %q", got, home)
	}
	g.end(s, hostsim.EndNormal)
	g.Advance(40 * tick)
	if got := g.gauge("inflight", home); got != 0 {
		t.Errorf("%d running requests on %s at the end", got, home)
	}
	if r := g.record("default"); len(r.List) != 2 || r.Open() != 0 {
		t.Errorf("what the reset ended is still there: %+v", r.List)
	}
	if r := g.turn("a"); r.reason != "placed" {
		t.Errorf("after the reset: %s", r.reason)
	}
}
