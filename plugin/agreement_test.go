package plugin

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/etcd"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// agreeing are gateways in front of the same replicas, each with shared data of its own, and the etcd that they share.
type agreeing struct {
	t        *testing.T
	etcd     *etcd.Server
	gateways []*gateway
	// calls are the paths of the calls, by gateway.
	calls [][]string
}

const fourReplicas = `"replicas":["10.0.0.1:8000","10.0.0.2:8000","10.0.0.3:8000","10.0.0.4:8000"]`

const agreementOn = `,"agreement":{"kind":"etcd","cluster":"etcd"},"admin":{"path":"/pinwheel"}`

func startAgreeing(t *testing.T, gateways int, config string) *agreeing {
	t.Helper()
	a := &agreeing{t: t, etcd: etcd.New()}
	for range gateways {
		a.start(config)
	}
	return a
}

func (a *agreeing) start(config string) {
	a.t.Helper()
	i := len(a.gateways)
	a.calls = append(a.calls, nil)
	adjust := func(c *hostsim.Config) {
		c.AllowOnHeadersStopIteration = true
		c.LogLevel, c.Seed, c.Clock = hostsim.LogInfo, uint64(i+1), hostsim.NewVirtualClock()
		clock := c.Clock
		c.HTTPCall = func(call *hostsim.HTTPCall) bool {
			if call.Cluster != "etcd" {
				return false
			}
			a.calls[i] = append(a.calls[i], call.Headers.Value(":path")+" "+string(call.Body))
			a.etcd.AdvanceTo(max(a.etcd.Now(), clock.Monotonic())) // each gateway has a clock of its own
			return a.etcd.HTTPCall(call)
		}
	}
	a.gateways = append(a.gateways, startWith(a.t, hosttest.Options{Workers: 2, Adjust: adjust}, config))
}

// poll lets a second pass, in which each gateway polls.
func (a *agreeing) poll() {
	for _, g := range a.gateways {
		g.Advance(time.Second)
	}
}

// asked returns the number of transactions about sessions of a gateway since it was last asked.
func (a *agreeing) asked(i int) (n int) {
	for _, c := range a.calls[i] {
		if strings.Contains(c, `"compare"`) {
			n++
		}
	}
	a.calls[i] = nil
	return n
}

// agreed is what the gateway knows of its agreement.
func (g *gateway) agreed() (state agreementState) {
	g.t.Helper()
	for _, key := range g.SharedData().Keys() {
		if value, _, _ := g.SharedData().Get(key); strings.HasPrefix(key, keyRoot+"default/agreement/") && !state.decode(value) {
			g.t.Fatalf("state % x", value)
		}
	}
	return state
}

func TestGatewaysAgree(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.poll()
	homes := map[string]string{}
	counts := map[string]int{}
	for n := range 200 {
		id := fmt.Sprint("session ", n)
		first := a.gateways[n%2].turn(id)
		if first.reason != "placed" || first.replica == "" {
			t.Fatalf("first turn: %q by %q", first.replica, first.reason)
		}
		homes[id] = first.replica
		counts[first.replica]++
	}
	a.asked(0)
	for id, home := range homes {
		for turn := range 4 {
			for i, g := range a.gateways {
				got := g.turn(id)
				if got.replica != home || got.reason != "pinned" {
					t.Fatalf("turn %d of %q at gateway %d: %q by %q, its home is %q", turn, id, i, got.replica, got.reason, home)
				}
			}
		}
	}
	if n := a.asked(0); n != 100 {
		t.Errorf("gateway 0 asked %d times for the 100 sessions that came to the other first", n)
	}
	for replica, n := range counts {
		if n < 45 || n > 56 {
			t.Errorf("%s has %d of 200 sessions", replica, n)
		}
	}
	a.poll()
	for i, g := range a.gateways {
		s := g.on(0, hosttest.Request{Method: "GET", Path: "/pinwheel/status"})
		for replica, n := range counts {
			if !strings.Contains(s.ResponseBody, fmt.Sprintf(`"fleet_sessions":%d`, n)) {
				t.Errorf("gateway %d does not know of the %d sessions of %s: %s", i, n, replica, s.ResponseBody)
			}
		}
	}
}

// home returns the session's home as etcd has it, "" for none. There is but one session.
func (a *agreeing) home() string {
	a.t.Helper()
	keys := a.etcd.Keys("/pinwheel/default/s/")
	if len(keys) == 0 {
		return ""
	}
	home, _ := a.etcd.Value(keys[0])
	return home
}

func TestReleaseReachesAllGateways(t *testing.T) {
	for _, at := range []int{0, 1} {
		a := startAgreeing(t, 2, fourReplicas+agreementOn)
		a.poll()
		for _, g := range a.gateways {
			g.turn("s")
		}
		if got := a.gateways[at].release("s"); got.Status != 200 {
			t.Fatalf("release: %d", got.Status)
		}
		if keys := a.etcd.Keys("/pinwheel/default/s/"); len(keys) != 0 {
			t.Errorf("left in etcd: %v", keys)
		}
		if keys := a.etcd.Keys("/pinwheel/default/r/"); len(keys) != 0 {
			t.Errorf("left in etcd: %v", keys)
		}
		a.poll()
		for i, g := range a.gateways {
			if n := g.sessions("default"); n != 0 {
				t.Errorf("gateway %d has %d sessions", i, n)
			}
			a.asked(i)
			if got := g.turn("s"); got.replica != a.home() {
				t.Errorf("gateway %d: %s, home %s", i, got.replica, a.home())
			}
			if n := a.asked(i); n != 1 {
				t.Errorf("gateway %d asked %d times", i, n)
			}
		}
	}
}

func TestRestartedGatewayFindsItsSessions(t *testing.T) {
	a := startAgreeing(t, 1, fourReplicas+agreementOn)
	a.poll()
	homes := map[string]string{}
	for n := range 50 {
		id := fmt.Sprint(n)
		homes[id] = a.gateways[0].turn(id).replica
	}
	a.start(fourReplicas + agreementOn) // with nothing in its shared data
	for id, home := range homes {
		if got := a.gateways[1].turn(id); got.replica != home || got.reason != "pinned" {
			t.Errorf("%s: %s by %s, want %s", id, got.replica, got.reason, home)
		}
	}
}

func TestLostReplicaMovesOnce(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn+`,"health":{"failures":1,"cooldown":"1m"}`)
	a.poll()
	first := a.gateways[0].turn("s")
	a.gateways[1].turn("s")
	for _, g := range a.gateways { // each learns for itself
		r := turnOf("s")
		r.Upstream, r.Response.Status = first.replica, 502
		g.do(r)
	}
	a.poll() // all workers have heard of it
	moved := a.gateways[0].turn("s")
	if moved.replica == first.replica || moved.reason != "failover_unhealthy" || a.home() != moved.replica {
		t.Errorf("%s by %s, was %s; home %s", moved.replica, moved.reason, first.replica, a.home())
	}
	if got := a.gateways[1].turn("s"); got.replica != moved.replica || got.reason != "pinned" {
		t.Errorf("the other gateway: %s by %s, want %s", got.replica, got.reason, moved.replica)
	}
	a.poll()
	for i, g := range a.gateways {
		a.asked(i)
		if got := g.turn("s"); got.replica != moved.replica || got.reason != "pinned" {
			t.Errorf("gateway %d: %s by %s, want %s", i, got.replica, got.reason, moved.replica)
		}
		if n := a.asked(i); n != 0 {
			t.Errorf("gateway %d asked %d times", i, n)
		}
		g.mustOpenAt(moved.replica)
	}
}

func (g *gateway) mustOpenAt(home string) {
	g.t.Helper()
	for address, n := range g.open() {
		if want := map[bool]int{true: 1}[address == home]; n != want {
			g.t.Errorf("%s has %d sessions, want %d", address, n, want)
		}
	}
}

// slowTurn sends a turn of the session on worker 0, and waits for etcd, or for its timeout. It returns the replica, and
// whether the turn waited.
func (g *gateway) slowTurn(id string) (replica string, waited bool) {
	g.t.Helper()
	s := g.Worker(0).NewStream()
	step, err := s.RequestHeaders(turnHeaders(id), true)
	if err != nil {
		g.t.Fatal(err)
	}
	for range 8 {
		if step.Flow == hostsim.Forward || s.RequestReady().Flow == hostsim.Forward {
			break
		}
		waited = true
		g.Advance(50 * time.Millisecond)
	}
	replica = replicaOf(s)
	g.end(s, hostsim.EndNormal)
	return replica, waited
}

func TestOutageHeals(t *testing.T) {
	for name, outage := range map[string]etcd.Outage{
		"refused": etcd.Refused, "hung": etcd.Hung, "answer hung": etcd.AnswerHung, "cut": etcd.Cut, "answer cut": etcd.AnswerCut,
	} {
		a := startAgreeing(t, 2, fourReplicas+agreementOn)
		a.poll()
		a.etcd.SetFaults(etcd.Faults{Outage: outage})
		for n := range 100 {
			id := fmt.Sprint(n)
			for i, g := range a.gateways {
				if replica, _ := g.slowTurn(id); replica == "" {
					t.Fatalf("%s: gateway %d names no replica for %s", name, i, id)
				}
			}
		}
		paid := 1
		if outage != etcd.Hung && outage != etcd.AnswerHung { // it may be the next member's turn
			paid += resends
		}
		for i := range a.gateways {
			if n := a.asked(i); n != paid {
				t.Errorf("%s: gateway %d asked %d times", name, i, n)
			}
		}
		if s := a.gateways[0].on(0, hosttest.Request{Method: "GET", Path: "/pinwheel/status"}).ResponseBody; !strings.Contains(s, `"breaker":"open"`) {
			t.Errorf("%s: status %s", name, s)
		}
		a.etcd.SetFaults(etcd.Faults{})
		a.poll()
		a.poll()
		for n := range 100 {
			id := fmt.Sprint(n)
			one, other := a.gateways[0].turn(id), a.gateways[1].turn(id)
			if one.replica != other.replica || one.reason != "pinned" || other.reason != "pinned" {
				t.Errorf("%s: session %d: %s by %s and %s by %s", name, n, one.replica, one.reason, other.replica, other.reason)
			}
		}
		for i := range a.gateways {
			a.asked(i)
		}
		for n := range 100 {
			a.gateways[0].turn(fmt.Sprint(n))
		}
		if n := a.asked(0); n != 0 {
			t.Errorf("%s: asked %d times after all was healed", name, n)
		}
		if s := a.gateways[0].on(0, hosttest.Request{Method: "GET", Path: "/pinwheel/status"}).ResponseBody; !strings.Contains(s, `"breaker":"closed"`) {
			t.Errorf("%s: status %s", name, s)
		}
	}
}

func TestOrdersReachAllGateways(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.poll()
	post := func(path string) {
		t.Helper()
		if got := a.gateways[0].do(hosttest.Request{Method: "POST", Path: path}); got.Status != 200 {
			t.Fatalf("%s: %d %s", path, got.Status, got.ResponseBody)
		}
		a.poll()
	}
	drained := func() bool {
		return a.gateways[1].record("default").List[1].Drained
	}
	post("/pinwheel/drain?replica=10.0.0.2:8000")
	if !drained() {
		t.Error("the other gateway has not heard of the drain")
	}
	a.start(fourReplicas + agreementOn)
	a.poll()
	if !a.gateways[2].record("default").List[1].Drained {
		t.Error("a gateway that starts later has not heard of the drain")
	}
	post("/pinwheel/undrain?replica=10.0.0.2:8000")
	if drained() {
		t.Error("the other gateway has not heard that the drain has ended")
	}
	a.gateways[1].turn("s")
	post("/pinwheel/reset")
	for address, n := range a.gateways[1].open() {
		if n != 0 {
			t.Errorf("%s has %d sessions after a reset", address, n)
		}
	}
	if home := a.home(); home != "" {
		t.Errorf("a home after a reset: %s", home)
	}
}

func TestAnotherEtcd(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.poll()
	for range 20 { // many revisions
		a.gateways[0].turn("other")
		a.gateways[0].release("other")
	}
	home := a.gateways[0].turn("s").replica
	a.poll()
	now := a.etcd.Now()
	a.etcd.Restore(etcd.New()) // empty, at its first revision
	a.etcd.AdvanceTo(now)
	a.poll()
	a.poll()
	a.asked(0)
	if got := a.gateways[0].turn("s"); got.replica != home || a.home() != home || a.asked(0) == 0 {
		t.Errorf("%s, home %s, want %s", got.replica, a.home(), home)
	}
	if got := a.gateways[1].turn("s"); got.replica != home {
		t.Errorf("the other gateway: %s, want %s", got.replica, home)
	}
	a.gateways[0].turn("s")
	if n := a.asked(0); n != 0 {
		t.Errorf("asked %d times for a session that both etcd and the gateway know", n)
	}
}

func TestAuth(t *testing.T) {
	const password = `,"agreement":{"kind":"etcd","cluster":"etcd","username":"pinwheel","password":"a \"word\""}`
	users := map[string]etcd.User{"pinwheel": {Password: `a "word"`, Prefixes: []string{"/pinwheel/"}}}
	a := startAgreeing(t, 2, fourReplicas+password)
	a.etcd.EnableAuth(users)
	a.poll()
	home := a.gateways[0].turn("s").replica
	if got := a.gateways[1].turn("s"); got.replica != home || a.home() != home {
		t.Errorf("%s and %s, home %s", home, got.replica, a.home())
	}
	a.etcd.Restart(0) // tokens are lost
	if got := a.gateways[0].turn("t"); got.replica == "" {
		t.Error("no replica without a token")
	}
	a.poll()
	a.poll()
	one, other := a.gateways[0].turn("t"), a.gateways[1].turn("t")
	if one.replica != other.replica || len(a.etcd.Keys("/pinwheel/default/s/")) != 2 {
		t.Errorf("with a new token: %s and %s, keys %v", one.replica, other.replica, a.etcd.Keys("/"))
	}
	users["pinwheel"] = etcd.User{Password: "another", Prefixes: []string{"/pinwheel/"}}
	a.etcd.EnableAuth(users)
	a.poll()
	a.poll()
	if got := a.gateways[0].turn("u"); got.replica == "" {
		t.Error("no replica with a wrong password")
	}
	for range 15 {
		a.poll()
	}
	if !a.gateways[0].Logged("etcd refuses: code 3") {
		t.Error("no warning of a wrong password")
	}
}

// leaseOf returns the lease that the key hangs on.
func (a *agreeing) leaseOf(key string) string {
	a.t.Helper()
	_, body := a.etcd.Handle("POST", "/v3/kv/range", nil, []byte(`{"key":"`+base64.StdEncoding.EncodeToString([]byte(key))+`"}`))
	lease := json.Get(string(body), "kvs.0.lease")
	kvs := json.Get(string(body), "kvs")
	kvs.ForEach(func(_, kv json.Result) bool { lease = kv.Get("lease"); return false })
	return lease.Str
}

func TestSessionsOutliveTheirLeases(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn+`,"session":{"idle_timeout":"8s"}`) // buckets of 2 s, leases of 14 s
	a.poll()
	home := a.gateways[0].turn("s").replica
	a.gateways[0].turn("idle")
	keys := map[string]bool{}
	for range 60 {
		a.poll()
		if got := a.gateways[0].turn("s"); got.replica != home || got.reason != "pinned" {
			t.Fatalf("%s by %s, want %s", got.replica, got.reason, home)
		}
		for _, key := range a.etcd.Keys("/pinwheel/default/s/") {
			keys[a.leaseOf(key)] = true
		}
	}
	if n := len(a.etcd.Keys("/pinwheel/default/s/")); n != 1 {
		t.Errorf("%d homes in etcd: one session was active, one idle for 60 s", n)
	}
	if n := len(a.etcd.Keys("/pinwheel/default/r/")); n != 1 {
		t.Errorf("%d counted in etcd", n)
	}
	if len(keys) < 20 {
		t.Errorf("the sessions had %d leases in 30 buckets", len(keys))
	}
	if got := a.gateways[1].turn("s"); got.replica != home || got.reason != "pinned" {
		t.Errorf("the other gateway: %s by %s, want %s", got.replica, got.reason, home)
	}
	for i, g := range a.gateways {
		if n := g.sessions("default"); n != 1 {
			t.Errorf("gateway %d has %d sessions", i, n)
		}
	}
}

// Of several members of etcd one may be gone: the gateway's cluster comes to the next.
func TestNextMemberIsAsked(t *testing.T) {
	server, failed := etcd.New(), map[string]bool{}
	adjust := func(c *hostsim.Config) {
		c.LogLevel = hostsim.LogInfo
		c.HTTPCall = func(call *hostsim.HTTPCall) bool {
			if request := string(call.Body); !failed[request] {
				failed[request] = true
				call.Respond(hostsim.HTTPResponse{Headers: hostsim.Headers{{":status", "503"}}, Body: []byte("upstream connect error")})
				return true
			}
			return server.HTTPCall(call)
		}
	}
	g := startWith(t, hosttest.Options{Adjust: adjust}, fourReplicas+agreementOn)
	for n := range 20 {
		if got := g.turn(fmt.Sprint(n)); got.reason != "placed" {
			t.Errorf("by %s", got.reason)
		}
	}
	g.Advance(time.Second)
	if n := len(server.Keys("/pinwheel/default/s/")); n != 20 || g.Logged("etcd is not reached") {
		t.Errorf("%d of 20 homes in etcd", n)
	}
}

// Requests that wait for etcd are of clients that may leave.
func TestClientLeavesWhileItWaits(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.poll()
	a.poll() // there are leases
	a.etcd.SetFaults(etcd.Faults{Latency: 20 * time.Millisecond})
	g := a.gateways[0]
	s := g.Worker(0).NewStream()
	if step, err := s.RequestHeaders(turnHeaders("s"), true); err != nil || step.Flow == hostsim.Forward {
		t.Fatalf("%v, %v", step.Flow, err)
	}
	g.end(s, hostsim.EndClientGone)
	g.Advance(time.Second)
	if keys := a.etcd.Keys("/pinwheel/default/s/"); len(keys) != 1 {
		t.Fatalf("homes %v", keys)
	}
	a.asked(0)
	if got, waited := g.slowTurn("s"); got != a.home() || waited {
		t.Errorf("%s, home %s, waited %v", got, a.home(), waited)
	}
	if err := g.Worker(0).Err(); err != nil {
		t.Error(err)
	}
}

func TestReleaseDuringAnOutageIsNotLost(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.poll()
	for _, g := range a.gateways {
		g.turn("s")
	}
	a.etcd.SetFaults(etcd.Faults{Outage: etcd.Refused})
	a.poll()
	if got := a.gateways[0].release("s"); got.Status != 200 {
		t.Errorf("release: %d", got.Status)
	}
	a.etcd.SetFaults(etcd.Faults{})
	for range 3 {
		a.poll()
	}
	if home := a.home(); home != "" {
		t.Errorf("still at home at %s", home)
	}
	for i, g := range a.gateways {
		if n := g.sessions("default"); n != 0 {
			t.Errorf("gateway %d has %d sessions", i, n)
		}
	}
}

func TestAgreementOnBodies(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn+`,"session":{"body":["metadata.session_id"]}`)
	a.poll()
	body := hosttest.Request{Method: "POST", Path: "/v1/chat/completions", Headers: hostsim.Headers{{"content-type", "application/json"}},
		Chunks: []string{`{"metadata":{"sess`, `ion_id":"s"},"prompt":"`, strings.Repeat("x", 200_000), `"}`}}
	first := a.gateways[0].do(body)
	if first.replica == "" || first.replica != a.home() || first.RequestBody != strings.Join(body.Chunks, "") {
		t.Errorf("%s, home %s, %d bytes of body", first.replica, a.home(), len(first.RequestBody))
	}
	if got := a.gateways[1].do(body); got.replica != first.replica {
		t.Errorf("%s and %s", first.replica, got.replica)
	}
	if got := a.gateways[1].turn("s"); got.replica != first.replica || got.reason != "pinned" {
		t.Errorf("%s by %s", got.replica, got.reason)
	}
	// A release that names the session in its body.
	end := hosttest.Request{Method: "POST", Path: "/finish_session", Headers: hostsim.Headers{{"content-type", "application/json"}},
		Chunks: []string{`{"metadata":{"session_id":`, `"s"}}`}}
	if got := a.gateways[0].do(end); got.Status != 200 || a.home() != "" {
		t.Errorf("release: %d %s, home %q", got.Status, got.ResponseBody, a.home())
	}
}

func TestPollCountsLargePoolsInTurn(t *testing.T) {
	var replicas []string
	for n := range 300 {
		replicas = append(replicas, fmt.Sprintf(`"10.0.%d.%d:8000"`, n/100, n%100+1))
	}
	a := startAgreeing(t, 2, `"replicas":[`+strings.Join(replicas, ",")+`]`+agreementOn)
	a.poll()
	for n := range 100 {
		a.gateways[0].turn(fmt.Sprint(n))
	}
	for range 4 {
		a.poll()
	}
	s := a.gateways[1].on(0, hosttest.Request{Method: "GET", Path: "/pinwheel/status"})
	if n := strings.Count(s.ResponseBody, `"fleet_sessions":`) - strings.Count(s.ResponseBody, `"fleet_sessions":0`); n < 50 {
		t.Errorf("gateway 1 knows of sessions on %d replicas", n)
	}
	if a.gateways[1].Logged("etcd refuses") {
		t.Error("etcd refuses a poll")
	}
}

func TestFullTableKeepsAgreeing(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn+`,"session":{"max_sessions":10}`)
	a.poll()
	for n := range 30 {
		id := fmt.Sprint(n)
		one, other := a.gateways[0].turn(id), a.gateways[1].turn(id)
		if one.replica != other.replica {
			t.Errorf("%s: %s by %s, %s by %s", id, one.replica, one.reason, other.replica, other.reason)
		}
		if want := map[bool]string{true: "placed", false: "table_full"}[n < 10]; one.reason != want {
			t.Errorf("%s: by %s, want %s", id, one.reason, want)
		}
	}
	for i, g := range a.gateways {
		if n := g.sessions("default"); n != 10 {
			t.Errorf("gateway %d has %d sessions", i, n)
		}
	}
}

// Whoever writes etcd's keys may move sessions, but only to members of the pool.
func TestEtcdNamesAStranger(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.poll()
	first := a.gateways[0].turn("s")
	key := a.etcd.Keys("/pinwheel/default/s/")[0]
	for _, stranger := range []string{"192.0.2.1:80", "10.0.0.1:8000,192.0.2.1:80", "\r\nx: y", "\xff", strings.Repeat("9", 10_000)} {
		body := `{"key":"` + base64.StdEncoding.EncodeToString([]byte(key)) + `","value":"` + base64.StdEncoding.EncodeToString([]byte(stranger)) + `"}`
		if status, _ := a.etcd.Handle("POST", "/v3/kv/put", nil, []byte(body)); status != 200 {
			t.Fatal(status)
		}
		got := a.gateways[1].turn("s")
		if !strings.Contains(fourReplicas, `"`+got.replica+`"`) || got.replica != a.home() {
			t.Errorf("%q: sent to %q, home %q", stranger, got.replica, a.home())
		}
		a.gateways[1].release("s")
		a.poll()
		first = a.gateways[0].turn("s")
	}
	if first.replica != a.home() {
		t.Errorf("%s, home %s", first.replica, a.home())
	}
}

// Answers that no etcd gives: each request goes on, and nothing panics.
func TestAnswersThatAreNone(t *testing.T) {
	huge := `{"header":{"cluster_id":"1","revision":"99999999999999999999999"},"succeeded":true}`
	for _, body := range []string{
		"", "null", "[]", "{}", "true", `"s"`, "{", strings.Repeat("[", 100_000), huge, `{"succeeded":true}`, `{"succeeded":1,"responses":{}}`,
		`{"header":[],"responses":[1,{"response_range":{"kvs":[{"value":"!"}]}}]}`, `{"responses":[{"response_range":{"kvs":[{"value":7,"lease":{}}]}}]}`,
		`{"code":"x","message":3}`, `{"token":5}`, `{"header":{"revision":"-5","cluster_id":"-1"},"responses":[{},{},{},{},{},{}]}`,
		`{"header":{"revision":"7","cluster_id":"1"},"responses":[{"response_range":{"kvs":[{"key":"L3BpbndoZWVsL2RlZmF1bHQvZi96eg==","value":""},{"key":""}]}},{},{"response_range":{"count":"-1"}},{"response_range":{"count":"x"}},{},{}]}`,
	} {
		for _, status := range []string{"200", "302", "400"} {
			adjust := func(c *hostsim.Config) {
				c.LogLevel = hostsim.LogInfo
				c.HTTPCall = func(call *hostsim.HTTPCall) bool {
					call.Respond(hostsim.HTTPResponse{Headers: hostsim.Headers{{":status", status}}, Body: []byte(body)})
					return true
				}
			}
			g := startWith(t, hosttest.Options{Adjust: adjust}, fourReplicas+agreementOn)
			for n := range 5 {
				if replica, _ := g.slowTurn(fmt.Sprint(n)); !strings.Contains(fourReplicas, `"`+replica+`"`) {
					t.Errorf("%s %.60s: sent to %q", status, body, replica)
				}
				if got := g.release(fmt.Sprint(n)); got.Status != 200 {
					t.Errorf("%s %.60s: release %d", status, body, got.Status)
				}
				g.Advance(time.Second)
			}
			if n := g.Metric("pinwheel_errors_total.kind.panic"); n != 0 {
				t.Errorf("%s %.60s: %d panics", status, body, n)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A gateway without the cluster that leads to etcd.
func TestNoClusterToEtcd(t *testing.T) {
	g := startGateway(t, 2, fourReplicas+agreementOn)
	for n := range 8 {
		if got := g.turn(fmt.Sprint(n)); got.replica == "" || got.reason != "placed" {
			t.Errorf("%q by %q", got.replica, got.reason)
		}
		g.Advance(time.Second)
	}
	if !g.Logged("the gateway cannot ask") {
		t.Error("no warning")
	}
}
