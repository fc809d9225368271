package plugin

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/etcd"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// A sweep writes the pins anew that stay in a shard.
func TestASweepKeepsDoubt(t *testing.T) {
	a := startAgreeing(t, 1, fourReplicas+agreementOn+`,"session":{"idle_timeout":"8s","max_sessions":10}`) // one shard
	g := a.gateways[0]
	a.poll()
	g.turn("old")
	g.Advance(5 * time.Second)
	a.etcd.SetFaults(etcd.Faults{Outage: etcd.Refused})
	g.slowTurn("s")
	g.Advance(5 * time.Second)
	if n := g.sessions("default"); n != 1 {
		t.Fatalf("%d sessions, one has expired", n)
	}
	a.etcd.SetFaults(etcd.Faults{})
	a.poll()
	a.poll()
	if got := g.turn("s"); len(a.etcd.Keys("/pinwheel/default/r/"+got.replica+"/")) != 1 {
		t.Errorf("etcd was not told of a session that was placed on %s during the outage", got.replica)
	}
}

// While an old configuration drains both poll.
func TestAnotherPrefixHasItsOwnLog(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.poll()
	old := a.gateways[0].begin(0, "")
	for _, g := range a.gateways {
		if err := g.reconfigure(fourReplicas + `,"agreement":{"kind":"etcd","cluster":"etcd","prefix":"/new"},"admin":{"path":"/pinwheel"}`); err != nil {
			t.Fatal(err)
		}
	}
	a.poll()
	for n := range 10 {
		id := fmt.Sprint(n)
		for _, g := range a.gateways {
			g.turn(id)
		}
		a.gateways[1].release(id)
		a.poll()
		a.poll()
		if n := a.gateways[0].sessions("default"); n != 0 {
			t.Fatalf("session %s: gateway 0 has not heard of its end", id)
		}
	}
	a.gateways[0].end(old, hostsim.EndNormal)
}

// startOver starts a gateway whose calls to etcd are answered by call.
func startOver(t *testing.T, config string, call func(*hostsim.HTTPCall) bool) *gateway {
	t.Helper()
	return startWith(t, hosttest.Options{Workers: 2, Adjust: func(c *hostsim.Config) {
		c.AllowOnHeadersStopIteration = true
		c.LogLevel, c.HTTPCall = hostsim.LogInfo, call
	}}, config)
}

func isPoll(c *hostsim.HTTPCall) bool { return strings.Contains(string(c.Body), "min_mod_revision") }

// An answer may come after that of a later poll, from another member of etcd.
func TestALatePollIsNoOtherEtcd(t *testing.T) {
	server := etcd.New()
	polls, slow, asked := 0, -1, 0
	g := startOver(t, fourReplicas+`,"agreement":{"kind":"etcd","cluster":"etcd","timeout":"2s"}`, func(c *hostsim.HTTPCall) bool {
		server.SetFaults(etcd.Faults{})
		if isPoll(c) {
			if polls++; polls == slow {
				server.SetFaults(etcd.Faults{Latency: 1500 * time.Millisecond})
			}
		} else if strings.Contains(string(c.Body), `"compare"`) {
			asked++
		}
		return server.HTTPCall(c)
	})
	g.Advance(3 * time.Second)
	for n := range 20 {
		g.turn(fmt.Sprint(n))
	}
	g.Advance(time.Second)
	slow = polls + 1
	for n := range 20 {
		g.Advance(250 * time.Millisecond)
		g.turn(fmt.Sprint("more ", n))
	}
	g.Advance(2 * time.Second)
	asked = 0
	for n := range 20 {
		g.turn(fmt.Sprint(n))
	}
	if asked != 0 {
		t.Errorf("asked %d times for sessions that both etcd and the gateway know", asked)
	}
}

// A gateway that starts polls before it knows its replicas.
func TestADrainReachesDiscoveredReplicas(t *testing.T) {
	server, envoy := etcd.New(), &admin{}
	envoy.vllm(hostA, hostB)
	config := discovered + agreementOn
	start := func() *gateway {
		return startOver(t, config, func(c *hostsim.HTTPCall) bool { return envoy.call(c) || server.HTTPCall(c) })
	}
	g := start()
	g.Advance(3 * time.Second)
	if got := g.do(hosttest.Request{Method: "POST", Path: "/pinwheel/drain?replica=" + hostB}); got.Status != 200 {
		t.Fatal(got.ResponseBody)
	}
	g.Advance(2 * time.Second)
	envoy.answer.After = 1500 * time.Millisecond
	later := start()
	later.Advance(5 * time.Second)
	for _, c := range later.record("default").List {
		if c.Drained != (c.Address == hostB) {
			t.Errorf("%s drained: %v", c.Address, c.Drained)
		}
	}
}

// etcd before 3.4 has other paths: its JSON gateway answers with the code that missing leases have, too.
func TestNoSuchPath(t *testing.T) {
	asked := 0
	g := startOver(t, fourReplicas+agreementOn, func(c *hostsim.HTTPCall) bool {
		asked++
		c.Respond(hostsim.HTTPResponse{Headers: hostsim.Headers{{":status", "404"}}, Body: []byte(`{"error":"Not Found","message":"Not Found","code":5}`)})
		return true
	})
	g.Advance(2 * time.Second)
	asked = 0
	for n := range 10 {
		if got := g.turn(fmt.Sprint(n)); got.replica == "" {
			t.Error("no replica")
		}
	}
	if asked != 0 {
		t.Errorf("asked %d times in place of an etcd that answers no poll", asked)
	}
	if !g.Logged("etcd refuses: code 5") {
		t.Error("no warning")
	}
}

// An order that etcd was not told of in time is not told after another one of the same replica.
func TestTheLastOrderCounts(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.poll()
	order := func(worker int, path string) {
		t.Helper()
		if got := a.gateways[0].on(worker, hosttest.Request{Method: "POST", Path: path + "?replica=10.0.0.2:8000"}); got.Status != 200 {
			t.Fatalf("%s: %d %s", path, got.Status, got.ResponseBody)
		}
	}
	for _, workers := range [][2]int{{0, 0}, {0, 1}, {1, 0}} {
		a.etcd.SetFaults(etcd.Faults{Outage: etcd.Refused})
		a.poll()
		order(workers[0], "/pinwheel/drain")
		order(workers[1], "/pinwheel/undrain")
		a.etcd.SetFaults(etcd.Faults{})
		for range 4 {
			a.poll()
		}
		for i, g := range a.gateways {
			if g.record("default").List[1].Drained {
				t.Errorf("drained at worker %d, undrained at %d: gateway %d has it drained", workers[0], workers[1], i)
			}
		}
	}
}

// An answer may come after its request has gone on.
func TestAnAnswerAfterTheRequestHasGoneOn(t *testing.T) {
	server, missing := etcd.New(), 0
	noLease := hostsim.HTTPResponse{Headers: hostsim.Headers{{":status", "404"}}, After: 4 * time.Second,
		Body: []byte(`{"code":5,"message":"etcdserver: requested lease not found"}`)}
	config := fourReplicas + `,"agreement":{"kind":"etcd","cluster":"etcd","timeout":"5s"},"session":{"max_sessions":1}`
	g := startOver(t, config, func(c *hostsim.HTTPCall) bool {
		server.SetFaults(etcd.Faults{})
		switch {
		case missing == 0 || !strings.Contains(string(c.Body), `"CREATE"`):
		case missing == 1:
			server.SetFaults(etcd.Faults{Latency: 4 * time.Second})
		default:
			missing--
			c.Respond(noLease)
			return true
		}
		return server.HTTPCall(c)
	})
	g.turn("a") // the table is full
	missing = 3
	s := g.Worker(0).NewStream()
	if _, err := s.RequestHeaders(turnHeaders("s"), true); err != nil {
		t.Fatal(err)
	}
	g.Advance(20 * time.Second)
	if s.RequestReady().Flow != hostsim.Forward || replicaOf(s) == "" {
		t.Error("the request waits")
	}
	g.end(s, hostsim.EndNormal)
	if n := g.Metric("pinwheel_errors_total.kind.panic"); n != 0 {
		t.Errorf("%d panics", n)
	}
	if n := g.sessions("default"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// Gateways' clocks may differ by a bucket of time, half an hour here, and so by some minutes.
func TestClocksThatDiffer(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.gateways[0].Advance(2 * time.Minute)
	for range 130 {
		a.poll()
		for _, g := range a.gateways {
			g.turn("s")
		}
		a.gateways[1].release("s")
		a.etcd.Advance(900 * time.Millisecond) // until the next poll
		a.poll()
		if n := a.gateways[0].sessions("default"); n != 0 {
			t.Fatalf("at %v gateway 0 has not heard of the release", a.gateways[1].Now())
		}
	}
}

// A request that waits for leases waits no longer than for a home.
func TestLeasesThatHang(t *testing.T) {
	server := etcd.New()
	g := startOver(t, fourReplicas+agreementOn, func(c *hostsim.HTTPCall) bool {
		return strings.Contains(string(c.Body), "TTL") || server.HTTPCall(c)
	})
	g.Advance(3 * time.Second)
	s := g.Worker(0).NewStream()
	if _, err := s.RequestHeaders(turnHeaders("s"), true); err != nil {
		t.Fatal(err)
	}
	var waited time.Duration
	for ; s.RequestReady().Flow != hostsim.Forward && waited < time.Minute; waited += 50 * time.Millisecond {
		g.Advance(50 * time.Millisecond)
	}
	if waited > 500*time.Millisecond {
		t.Errorf("waited %v", waited)
	}
	g.end(s, hostsim.EndNormal)
}

// The other user's token is good, and not for these keys.
func TestAnotherUser(t *testing.T) {
	config := func(prefix, user string) string {
		return fourReplicas + `,"agreement":{"kind":"etcd","cluster":"etcd","prefix":"` + prefix + `","username":"` + user + `","password":"p"}`
	}
	a := startAgreeing(t, 1, config("/one", "one"))
	a.etcd.EnableAuth(map[string]etcd.User{"one": {Password: "p", Prefixes: []string{"/one/"}}, "two": {Password: "p", Prefixes: []string{"/two/"}}})
	a.poll()
	g := a.gateways[0]
	old := g.begin(0, "")
	if err := g.reconfigure(config("/two", "two")); err != nil {
		t.Fatal(err)
	}
	a.poll()
	a.poll()
	for n := range 5 {
		if got := g.turn(fmt.Sprint(n)); got.reason != "placed" {
			t.Error(got.reason)
		}
	}
	if n := len(a.etcd.Keys("/two/default/s/")); n != 5 {
		t.Errorf("%d homes", n)
	}
	g.end(old, hostsim.EndNormal)
}

// Streams that end at every moment while others begin: contexts are used again.
func TestContextsAreUsedAgain(t *testing.T) {
	a := startAgreeing(t, 1, fourReplicas+agreementOn)
	a.poll()
	g := a.gateways[0]
	a.etcd.SetFaults(etcd.Faults{Latency: 20 * time.Millisecond})
	for n := range 300 {
		s := g.Worker(0).NewStream()
		h := turnHeaders(fmt.Sprint("gone", n))
		if n%3 == 0 {
			for i := range h {
				if h[i][0] == ":path" {
					h[i][1] = "/finish_session"
				}
			}
		}
		if _, err := s.RequestHeaders(h, n%2 == 0); err != nil {
			t.Fatal(err)
		}
		if n%5 == 0 {
			g.Advance(10 * time.Millisecond)
		}
		g.end(s, hostsim.EndClientGone)
		id := fmt.Sprint("s", n)
		if got, waited := g.slowTurn(id); got == "" || !waited {
			t.Fatalf("%s: %q %v", id, got, waited)
		}
	}
	g.Advance(time.Second)
	g.mustRun(0)
	if n := g.Metric("pinwheel_errors_total.kind.panic"); n != 0 {
		t.Errorf("%d panics", n)
	}
	for address, n := range g.open() {
		if m := len(a.etcd.Keys("/pinwheel/default/r/" + address + "/")); m != n {
			t.Errorf("%s %d %d", address, n, m)
		}
	}
}

// A cluster that leads to two etcds is a mistake, and no reason to ask without a pause.
func TestTwoEtcds(t *testing.T) {
	servers, polls := []*etcd.Server{etcd.New(), etcd.New()}, 0
	second := regexp.MustCompile(`"cluster_id":"\d+"`)
	g := startOver(t, fourReplicas+agreementOn, func(c *hostsim.HTTPCall) bool {
		if !isPoll(c) {
			return servers[0].HTTPCall(c)
		}
		polls++
		_, body := servers[polls%2].Handle("POST", c.Headers.Value(":path"), c.Headers, c.Body)
		if polls%2 == 1 {
			body = second.ReplaceAll(body, []byte(`"cluster_id":"7"`))
		}
		c.Respond(hostsim.HTTPResponse{Headers: hostsim.Headers{{":status", "200"}}, Body: body, After: time.Millisecond})
		return true
	})
	g.Advance(10 * time.Second)
	if polls > 20 {
		t.Errorf("%d polls in 10 s", polls)
	}
	if got := g.turn("s"); got.replica == "" {
		t.Error("no replica")
	}
}
