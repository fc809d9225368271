package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// answerOf is the JSON body of an answer to a release.
type answerOf struct {
	Status    string  `json:"status"`
	SessionID *string `json:"session_id"`
	Error     string  `json:"error"`
}

// released fails unless the plugin answered the request itself, with that status
// and valid JSON.
func (g *gateway) released(r hosttest.Request, status int) (a answerOf) {
	g.t.Helper()
	res := g.do(r)
	if res.Local == nil || len(res.Request) != 0 || res.Status != status {
		g.t.Errorf("%s %s: status %d (local %v, forwarded %v), want %d from the plugin", r.Method, r.Path, res.Status, res.Local != nil, len(res.Request) != 0, status)
	}
	if r.Method == "HEAD" {
		if res.ResponseBody != "" {
			g.t.Errorf("HEAD %s: body %q", r.Path, res.ResponseBody)
		}
		return a
	}
	if err := json.Unmarshal([]byte(res.ResponseBody), &a); err != nil {
		g.t.Errorf("%s %s: %v in %q", r.Method, r.Path, err, res.ResponseBody)
	}
	if want := map[bool]string{true: "ok", false: "error"}[status == 200]; a.Status != want {
		g.t.Errorf("%s %s: %q", r.Method, r.Path, res.ResponseBody)
	}
	if got := res.Response.Value("content-type"); got != "application/json" {
		g.t.Errorf("%s %s: content-type %q", r.Method, r.Path, got)
	}
	return a
}

// isOpenID asks whether the session is open without ending or moving it.
func (g *gateway) isOpenID(id string) bool { return g.turn(id).reason == "pinned" }

func post(path string, headers ...[2]string) hosttest.Request {
	return hosttest.Request{Method: "POST", Path: path, Headers: headers}
}

func sessionHeader(v string) [2]string { return [2]string{"x-session-id", v} }

func TestReleaseForms(t *testing.T) {
	for what, c := range map[string]struct {
		open    []string // sessions before, beside "other"
		request hosttest.Request
		ended   []string
		echo    string
	}{
		"known":                        {[]string{"a"}, post("/finish_session?session_id=a"), []string{"a"}, "a"},
		"unknown":                      {nil, post("/finish_session?session_id=nobody"), nil, "nobody"},
		"DELETE":                       {[]string{"a"}, hosttest.Request{Method: "DELETE", Path: "/finish_session?session_id=a"}, []string{"a"}, "a"},
		"escaped":                      {[]string{"a b/ü?&="}, post("/finish_session?session_id=a%20b%2f%C3%BC%3F%26%3D"), []string{"a b/ü?&="}, "a b/ü?&="},
		"plus is a space":              {[]string{"a b"}, post("/finish_session?session_id=a+b"), []string{"a b"}, "a b"},
		"escaped plus":                 {[]string{"a+b"}, post("/finish_session?session_id=a%2Bb"), []string{"a+b"}, "a+b"},
		"escaped percent":              {[]string{"a%20b"}, post("/finish_session?session_id=a%2520b"), []string{"a%20b"}, "a%20b"},
		"invalid escapes":              {[]string{"50%", "%zz%4"}, post("/finish_session?session_id=50%,%zz%4"), []string{"50%", "%zz%4"}, "50%,%zz%4"},
		"comma list":                   {[]string{"a", "b", "c"}, post("/finish_session?session_id=a,b"), []string{"a", "b"}, "a,b"},
		"list with gaps and spaces":    {[]string{"a", "b"}, post("/finish_session?session_id=,a,,%20b%20,"), []string{"a", "b"}, "a,b"},
		"repeated parameter":           {[]string{"a", "b", "c"}, post("/finish_session?session_id=a&session_id=c"), []string{"a", "c"}, "a,c"},
		"id with a comma, escaped":     {[]string{"a,b", "a", "b"}, post("/finish_session?session_id=a%2Cb"), []string{"a,b"}, "a,b"},
		"list, commas escaped":         {[]string{"a", "b", "c"}, post("/finish_session?session_id=a%2Cb"), []string{"a", "b"}, "a,b"},
		"other parameters beside":      {[]string{"a"}, post("/finish_session?x=1&session_id=a&session=b&xsession_id=other"), []string{"a"}, "a"},
		"header":                       {[]string{"a"}, post("/finish_session", sessionHeader("a")), []string{"a"}, "a"},
		"header, empty query":          {[]string{"a"}, post("/finish_session?", sessionHeader("a")), []string{"a"}, "a"},
		"header, empty parameter":      {[]string{"a"}, post("/finish_session?session_id=", sessionHeader("a")), []string{"a"}, "a"},
		"header is not unescaped":      {[]string{"a+b", "a b"}, post("/finish_session", sessionHeader("a+b")), []string{"a+b"}, "a+b"},
		"header list":                  {[]string{"a", "b", "c"}, post("/finish_session", sessionHeader("a, c")), []string{"a", "c"}, "a, c"},
		"header, id with a comma":      {[]string{"a,b", "a", "b"}, post("/finish_session", sessionHeader("a,b")), []string{"a,b"}, "a,b"},
		"query before header":          {[]string{"a", "b"}, post("/finish_session?session_id=a", sessionHeader("b")), []string{"a"}, "a"},
		"same id twice":                {[]string{"a", "b"}, post("/finish_session?session_id=a,a&session_id=a"), []string{"a"}, "a,a,a"},
		"not UTF-8":                    {[]string{"\xc0\xa7"}, post("/finish_session?session_id=%C0%A7"), []string{"\xc0\xa7"}, "\ufffd\ufffd"},
		"not UTF-8 in the header":      {[]string{"\xc0\xa7"}, post("/finish_session", sessionHeader("\xc0\xa7")), []string{"\xc0\xa7"}, "\ufffd\ufffd"},
		"quotes and control bytes":     {[]string{`a"\`, "\x01"}, post("/finish_session?session_id=a%22%5c,%01"), []string{`a"\`, "\x01"}, `a"\` + ",\x01"},
		"longer than the limit":        {nil, post("/finish_session?session_id=" + strings.Repeat("z", 70_000)), nil, strings.Repeat("z", 70_000)},
		"body of 300 KB":               {[]string{"a"}, hosttest.Request{Method: "POST", Path: "/finish_session?session_id=a", Body: strings.Repeat("b", 300<<10)}, []string{"a"}, "a"},
		"body in chunks, id in header": {[]string{"a"}, hosttest.Request{Method: "POST", Path: "/finish_session", Headers: hostsim.Headers{{"x-session-id", "a"}}, Chunks: []string{"{", "", "}"}}, []string{"a"}, "a"},
	} {
		t.Run(what, func(t *testing.T) {
			g := startGateway(t, 2, twoReplicas)
			home := g.turn("other").replica
			for _, id := range c.open {
				g.turn(id)
			}
			for range 2 { // the second finds none of them
				a := g.released(c.request, 200)
				if a.SessionID == nil || *a.SessionID != c.echo {
					t.Errorf("answer %+v, want session_id %q", a, c.echo)
				}
				if strings.Contains(what, "id with a comma") {
					break // the list of a and b, now that no session has this id
				}
			}
			if got, want := g.sessions("default"), 1+len(c.open)-len(c.ended); got != want {
				t.Errorf("%d sessions open, want %d", got, want)
			}
			for _, id := range c.open {
				if open := g.isOpenID(id); open == contains(c.ended, id) {
					t.Errorf("session %q: open %v", id, open)
				}
			}
			if r := g.turn("other"); r.reason != "pinned" || r.replica != home {
				t.Errorf("another session moved: %s on %s", r.reason, r.replica)
			}
			if g.Advance(tick); g.Metric("pinwheel_released_total.pool.default") != int64(len(c.ended)) {
				t.Errorf("%d releases counted, want %d", g.Metric("pinwheel_released_total.pool.default"), len(c.ended))
			}
		})
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestReleaseRefusals(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"release":{"secret":"se cret","secret_header":"X-Secret"}`)
	g.turn("a")
	right := [2]string{"x-secret", "se cret"}
	for _, wrong := range []string{"", "se cre", "se cret ", "se cret2", "SE CRET", "ae cret", "se crey"} {
		g.released(post("/finish_session?session_id=a", [2]string{"x-secret", wrong}), 401)
	}
	g.released(post("/finish_session?session_id=a"), 401)
	g.released(post("/finish_session?session_id=a", [2]string{"x-pinwheel-secret", "se cret"}), 401)
	for _, method := range []string{"GET", "PUT", "HEAD", "OPTIONS", "post"} {
		g.released(hosttest.Request{Method: method, Path: "/finish_session?session_id=a", Headers: hostsim.Headers{right}}, 405)
	}
	for _, path := range []string{"/finish_session", "/finish_session?", "/finish_session?session_id", "/finish_session?session_id=", "/finish_session?session_id=,%20,", "/finish_session?id=a&Session_id=a"} {
		g.released(post(path, right), 400)
		g.released(post(path, right, sessionHeader(" ")), 400)
	}
	g.mustOpen(counts(g)...)
	if !g.isOpenID("a") {
		t.Error("a refused release ended the session")
	}
	g.released(post("/finish_session?session_id=a", right), 200)
	if g.isOpenID("a") {
		t.Error("the right secret did not end the session")
	}
	if g.Advance(tick); g.Metric("pinwheel_released_total.pool.default") != 1 {
		t.Error("refused releases were counted")
	}
}

// counts are the open sessions as they are.
func counts(g *gateway) (n []int) {
	for _, c := range g.record("default").List {
		n = append(n, int(c.Open))
	}
	return n
}

func TestOnlyTheReleasePathIsAnswered(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	g.turn("a")
	for _, path := range []string{"/finish_sessions?session_id=a", "/finish_session/x?session_id=a", "/finish_session/", "/finish_sessio",
		"/FINISH_SESSION?session_id=a", "/v1/finish_session?session_id=a", "/?p=/finish_session", "/finish_session%3Fsession_id=a", "//finish_session"} {
		r := g.do(post(path, sessionHeader("a")))
		if r.Local != nil || r.reason != "pinned" || r.Request.Value(":path") != path {
			t.Errorf("%s: local %v, reason %s, want a turn like any other", path, r.Local != nil, r.reason)
		}
	}
	for what, config := range map[string]string{"off": `"path":""`, "elsewhere": `"path":"/bye"`} {
		g := startGateway(t, 2, twoReplicas+`,"release":{`+config+`}`)
		g.turn("a")
		if r := g.do(post("/finish_session?session_id=a", sessionHeader("a"))); r.Local != nil || r.reason != "pinned" {
			t.Errorf("release path %s: /finish_session is answered by the plugin", what)
		}
		if what == "elsewhere" {
			g.released(post("/bye?session_id=a"), 200)
			g.mustOpen(0, 0)
		}
	}
}

func TestReleaseFreesCapacity(t *testing.T) {
	g := startGateway(t, 2, threeReplicas)
	homes := map[string]string{}
	for i := range 9 {
		homes[fmt.Sprint("s", i)] = g.turn(fmt.Sprint("s", i)).replica
	}
	var freed string
	for id, home := range homes {
		if freed == "" {
			freed = home
		}
		if home == freed {
			g.release(id)
			delete(homes, id)
		}
	}
	for i := range 3 {
		if r := g.turn(fmt.Sprint("new", i)); r.replica != freed {
			t.Errorf("new session %d went to %s, %s is free", i, r.replica, freed)
		}
	}
	g.mustOpen(3, 3, 3)
	for id, home := range homes {
		if r := g.turn(id); r.reason != "pinned" || r.replica != home {
			t.Errorf("%s moved: %s on %s, was on %s", id, r.reason, r.replica, home)
		}
	}
}

// A turn that runs while its session is released completes and does not bring
// the pin back; a turn after it opens a new one.
func TestReleaseWhileATurnRuns(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"session":{"idle_timeout":"20s"}`)
	s := g.begin(0, "a")
	home := replicaOf(s)
	g.released(post("/finish_session?session_id=a"), 200)
	g.Advance(10 * tick) // ticks renew the pins of running turns
	if n := g.sessions("default"); n != 0 {
		t.Errorf("%d sessions open after the release, want 0", n)
	}
	if got := g.running(); got[home] != 1 {
		t.Errorf("running requests %v, want 1 on %s", got, home)
	}
	step, err := s.ResponseHeaders(hostsim.Headers{{":status", "200"}}, true)
	if err != nil || !step.End {
		t.Errorf("the running turn does not complete: %+v, %v", step, err)
	}
	g.end(s, hostsim.EndNormal)
	g.Advance(2 * tick)
	g.mustOpen(0, 0)
	if got := g.running(); got[home] != 0 {
		t.Errorf("running requests %v, want none", got)
	}
	if r := g.turn("a"); r.reason != "placed" {
		t.Errorf("a late turn is %s, want placed", r.reason)
	}
}

// One callback serves nobody else while it runs.
func TestReleaseOfTooManyIsRefused(t *testing.T) {
	g := startGateway(t, 1, twoReplicas)
	g.turn("a")
	list := strings.Repeat("a,", maxReleases)
	g.released(post("/finish_session?session_id="+list+"a"), 400)
	if !g.isOpenID("a") {
		t.Error("a refused request ended a session")
	}
	g.released(post("/finish_session?session_id="+list), 200)
	if g.isOpenID("a") {
		t.Error("as many as are allowed ended nothing")
	}
}

// PrimeIntellect-ai/prime-rl#3563, the input: clients that never say that they are
// done. Of 100 sessions 60 are finished, 20 break off within a turn, 20 come again
// under a new id. New sessions are spread by what is open, and what nobody finished
// ends by its timeout, however its last turn ended.
func TestSessionsThatNobodyFinishes(t *testing.T) {
	g := startGateway(t, 2, replicas(4)+`,"session":{"idle_timeout":"10m"}`)
	for i := range 100 {
		id := fmt.Sprint("s", i)
		g.turn(id)
		switch {
		case i < 60:
			g.release(id)
		case i < 80:
			g.end(g.begin(i%2, id), hostsim.EndClientGone)
		default:
			g.end(g.begin(i%2, id), hostsim.EndUpstreamReset)
			g.turn("again-" + id)
		}
	}
	if n := g.sessions("default"); n != 60 {
		t.Errorf("%d sessions open, want the 20 that broke off and 20 twice", n)
	}
	g.Advance(2 * tick)
	g.mustRun(0)
	g.Advance(9 * time.Minute)
	for i := range 100 {
		g.turn(fmt.Sprint("late", i))
	}
	g.mustOpen(40, 40, 40, 40)
	g.Advance(3 * time.Minute)
	g.mustOpen(25, 25, 25, 25)
}
