package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// A question that tells nothing leaves the pool as it is, is counted, and is
// warned of once a minute.
func TestAnswersThatTellNothing(t *testing.T) {
	whole := ok200(clusterOf("vllm", hostA))
	broken := ok200(clusterOf("vllm", hostA))
	broken.Body = broken.Body[:len(broken.Body)-3]
	unavailable := hostsim.HTTPResponse{Headers: hostsim.Headers{{":status", "503"}}, Body: whole.Body}
	late := whole
	late.After = 5100 * time.Millisecond
	for name, answer := range map[string]hostsim.HTTPResponse{
		"503":            unavailable,
		"a reset":        {Body: whole.Body},
		"cut off":        broken,
		"empty":          {Headers: whole.Headers},
		"no JSON":        {Headers: whole.Headers, Body: []byte("<html>")},
		"no cluster":     ok200(clusterOf("vllm2", hostA)),
		"no clusters":    ok200(),
		"too late":       late,
		"too many hosts": {Headers: whole.Headers, Body: []byte(strings.Replace(string(crowdedAnswer(maxReplicas+1)), "crowd", "vllm", 1))},
	} {
		g, a := startDiscovery(t, 1, discovered, hostA, hostB)
		g.Advance(0)
		g.turn("s")
		a.answer = answer
		g.Advance(30 * time.Second)
		g.mustHaveMembers(hostA+" active, "+hostB+" active", name)
		if r := g.turn("s"); r.reason != "pinned" {
			t.Errorf("%s: %s", name, r.reason)
		}
		if n := g.Metric("pinwheel_errors_total.kind.discovery"); n < 4 || n > 15 {
			t.Errorf("%s: counted %d times in 30 s", name, n)
		}
		warnings := g.Messages(hostsim.LogWarn)
		if len(warnings) != 1 || !strings.Contains(warnings[0], `the replicas stay as they are (2): cluster "envoy_admin": `) {
			t.Errorf("%s: warnings %q", name, warnings)
		}
		a.vllm(hostA)
		g.Advance(10 * time.Second)
		g.mustHaveMembers(hostA+" active", name+", and then an answer")
	}
}

// An admin interface that never answers is asked again, and one that the gateway
// does not know is warned of.
func TestAnAdminInterfaceThatIsNotThere(t *testing.T) {
	g, a := startDiscovery(t, 1, discovered, hostA)
	g.Advance(0)
	a.mute = true
	asked := len(a.asked)
	g.Advance(20 * time.Second)
	if n := len(a.asked) - asked; n < 3 || n > 5 { // each time the gateway gives up after 5 s
		t.Errorf("asked %d times in 20 s", n)
	}
	g = startGateway(t, 1, discovered)
	g.Advance(10 * time.Second)
	if r := g.turn("s"); r.reason != "no_replica" || r.Status != 200 {
		t.Errorf("%s, %d", r.reason, r.Status)
	}
	if w := g.Messages(hostsim.LogWarn); len(w) == 0 || !strings.Contains(w[0], "bad argument") {
		t.Errorf("warnings %q", w)
	}
}

// A cluster without hosts is believed at the second answer.
func TestAnEmptyClusterIsBelievedTheSecondTime(t *testing.T) {
	g, a := startDiscovery(t, 1, discovered, hostA)
	g.Advance(0)
	for range 3 {
		a.vllm()
		g.Advance(interval)
		g.mustHaveMembers(hostA+" active", "one empty answer")
		a.vllm(hostA)
		g.Advance(interval)
	}
	a.vllm()
	g.Advance(2 * interval)
	g.mustHaveMembers("", "two empty answers")
	if r := g.turn("s"); r.reason != "no_replica" {
		t.Errorf("%s", r.reason)
	}
}

// Answers that come out of turn change nothing.
func TestAnswersOutOfTurn(t *testing.T) {
	data := newMemoryData()
	s := newStore(data, PoolConfig{Name: "p", Cluster: "c", Discovered: true}, testSession(100))
	if !s.adopt(0, 0) {
		t.Fatal("shared data does not answer")
	}
	s.discovered(addresses(2), false, 0)
	mustHave(t, s, 2, "an empty pool is filled by anyone")
	s.discovered(addresses(3), false, 0)
	mustHave(t, s, 2, "a late answer of a worker that does not lead")
	s.discovered(addresses(3), true, 0)
	mustHave(t, s, 3, "the leader's")
	next := newStore(data, PoolConfig{Name: "p", Cluster: "d", Discovered: true}, testSession(100))
	next.adopt(10_000, 0)
	s.discovered(addresses(1), true, 20_000)
	mustHave(t, s, 3, "one for a configuration that is superseded")
}

// Half a megabyte, every time anew: none of it stays in the machine.
func TestAnswersLeaveNoMemoryBehind(t *testing.T) {
	g, a := startDiscovery(t, 1, strings.TrimSuffix(discovered, "}")+`,"interval":"100ms"}`)
	a.answer = hostsim.HTTPResponse{Headers: hostsim.Headers{{":status", "200"}},
		Body: []byte(strings.Replace(string(crowdedAnswer(512)), "crowd", "vllm", 1))}
	const polls = 200
	g.Advance(polls / 4 * 100 * time.Millisecond)
	if n := len(g.record("default").List); n != 512 {
		t.Fatalf("%d replicas", n)
	}
	before := g.Main().Memory()
	g.Advance(polls * 100 * time.Millisecond)
	if got := g.Counters().Callbacks["proxy_on_http_call_response"]; got < polls {
		t.Fatalf("%d answers", got)
	}
	if after := g.Main().Memory(); after > before+goArena || after > 32<<20 {
		t.Errorf("%d bytes, before %d", after, before)
	}
	t.Logf("answers of %d bytes: %d bytes of memory after %d, %d after %d", len(a.answer.Body), before, polls/4, g.Main().Memory(), polls)
}

// A panic while an answer is taken in costs that answer, and the next question
// the time in which it is sure that none will come.
func TestAPanicOverAnAnswer(t *testing.T) {
	a := &admin{}
	a.vllm(hostA)
	g := startWith(t, hosttest.Options{Wasm: buildModule(t, "pinwheel_inject"), Adjust: func(c *hostsim.Config) {
		c.LogLevel, c.HTTPCall = hostsim.LogInfo, a.call
	}}, discovered)
	g.Advance(0)
	g.turn("s")
	g.panicIn("proxy_on_http_call_response")
	a.vllm(hostA, hostB)
	g.Advance(interval)
	g.panicIn("")
	if n := len(g.panicLines()); n != 1 {
		t.Fatalf("%d lines about panics", n)
	}
	g.mustHaveMembers(hostA+" active", "after the panic")
	if r := g.turn("s"); r.reason != "pinned" {
		t.Errorf("%s", r.reason)
	}
	g.Advance(2*answerTimeout*time.Millisecond + interval)
	g.mustHaveMembers(hostA+" active, "+hostB+" active", "later")
}
