package plugin

import (
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

func TestStatusesThatAreFailures(t *testing.T) {
	for status, failed := range map[int]bool{100: false, 200: false, 307: false, 400: false, 404: false, 429: false, 499: false, 500: true, 502: true, 503: true, 504: true, 599: true} {
		g := startGateway(t, 1, twoReplicas+oneFailure)
		home := replicaOf(g.answered(0, "s", told{status: status}))
		if h := g.health(home); h.Cooling() != failed {
			t.Errorf("status %d: %+v", status, h)
		}
		if moved := replicaOf(g.answered(0, "s", told{status: 200})) != home; moved != failed {
			t.Errorf("status %d: moved %v", status, moved)
		}
	}
}

// A session leaves a replica that keeps refusing it, once, where configuration
// says that such answers are failures (diegosouzapw/OmniRoute#6219).
func TestStatusesAreConfigured(t *testing.T) {
	g := startGateway(t, 1, twoReplicas+`,"health":{"statuses":[429,"5xx"]}`)
	home := replicaOf(g.answered(0, "s", told{status: 200}))
	for range 3 {
		g.answered(0, "s", told{status: 400}) // bad input is the client's
	}
	for range 3 {
		if got := replicaOf(g.answered(0, "s", told{status: 429})); got != home {
			t.Errorf("went to %s before the third refusal", got)
		}
	}
	other := replicaOf(g.answered(0, "s", told{status: 200}))
	if other == home {
		t.Error("the session stays where it is refused")
	}
	if got := replicaOf(g.answered(0, "s", told{status: 200})); got != other {
		t.Error("the session moved twice")
	}
	if got := replicaOf(g.answered(0, "new", told{status: 200})); got != other {
		t.Errorf("a new session went to %s", got)
	}
	// A pin to a replica that is not listed is overwritten by the next turn.
	if err := g.reconfigure(`"replicas":["` + home + `"]`); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"failover_removed", "pinned"} {
		if r := g.turn("s"); r.reason != want || r.replica != home {
			t.Errorf("with its replica gone: %s on %s, want %s on %s", r.reason, r.replica, want, home)
		}
	}
}

// A turn that was sent before a cool-down tells nothing of what comes after,
// however late it is answered.
func TestAnswersFromBeforeACoolDown(t *testing.T) {
	for _, status := range []string{"500", "200"} {
		g := startGateway(t, 1, threeReplicas+oneFailure)
		s := g.begin(0, "s")
		g.Advance(tick)
		g.answered(0, "s", told{status: 500})
		home := replicaOf(s)
		before := *g.health(home)
		g.Advance(time.Duration(before.Cooldown+1) * time.Millisecond)
		s.SetProperty("upstream.address", []byte(home))
		if _, err := s.ResponseHeaders(hostsim.Headers{{":status", status}}, true); err != nil {
			t.Error(err)
		}
		g.end(s, hostsim.EndNormal)
		if after := *g.health(home); !before.Cooling() || after != before {
			t.Errorf("status %s: %+v, before %+v", status, after, before)
		}
	}
}

// What a later filter answers, or the gateway without having asked a host, or in place
// of what the host has answered, says nothing of the replica.
func TestAnswersOfOthersAreNoFailures(t *testing.T) {
	g := startGateway(t, 1, twoReplicas+oneFailure)
	home := replicaOf(g.answered(0, "s", told{status: 503, unrouted: true}))
	if h := g.health(home); *h != (policy.Health{}) {
		t.Errorf("%+v", h)
	}
	g.answered(0, "s", told{status: 503, upstream: "192.0.2.1:80"}) // no member
	// Envoy's own, when a filter in front of the router wants all of a large answer.
	g.answered(0, "s", told{status: 500, details: "response_payload_too_large"})
	g.Advance(2 * tick)
	if n := g.Metric("pinwheel_fallbacks_total.pool.default"); n != 1 {
		t.Errorf("%d fallbacks, want 1", n)
	}
	for _, c := range g.record("default").List {
		if c.Health != (policy.Health{}) {
			t.Errorf("%s: %+v", c.Address, c.Health)
		}
	}
}

// What the gateway answers while a replica has been asked, because of the client or
// of another filter, says nothing good of the replica.
func TestAnswersOfOthersAreNoSuccesses(t *testing.T) {
	g := startGateway(t, 1, twoReplicas)
	home := replicaOf(g.answered(0, "s", told{status: 500, details: "via_upstream"}))
	g.answered(0, "s", told{status: 400, details: "http1.codec_error"})
	g.answered(0, "s", told{status: 429, details: "request_rate_limited"})
	if h := g.health(home); h.Failures != 1 {
		t.Errorf("%+v, want one failure", h)
	}
	g.answered(0, "s", told{status: 400, details: "via_upstream"})
	if h := g.health(home); *h != (policy.Health{}) {
		t.Errorf("%+v after the replica's own answer", h)
	}
}

// A gateway may pass over the host that is named without having asked it, because its
// own health checks fail (Envoy, override_host): what a spare answers then ends no
// cool-down of that host.
func TestASparesAnswerIsNoSuccess(t *testing.T) {
	g := startGateway(t, 1, twoReplicas+`,"health":{"failures":1,"cooldown":"1m","max_cooldown":"1m"}`)
	failed := replicaOf(g.answered(0, "s", told{status: 500}))
	spare := replicaOf(g.answered(0, "s", told{status: 200}))
	g.Advance(61 * time.Second)
	if got := replicaOf(g.answered(0, "new", told{status: 200, upstream: spare, attempts: "1"})); got != failed {
		t.Fatalf("the trial went to %s, want %s", got, failed)
	}
	if h := g.health(failed); !h.Cooling() {
		t.Errorf("%+v after a spare's answer", h)
	}
	g.Advance(61 * time.Second)
	if got := replicaOf(g.answered(0, "newer", told{status: 200, attempts: "1"})); got != failed || g.health(failed).Cooling() {
		t.Errorf("the next trial, at %s, was well: %+v", got, g.health(failed))
	}
}

// What the gateway answers because the host did not is its failure.
func TestAnswersForAReplicaAreItsFailures(t *testing.T) {
	for _, details := range []string{"via_upstream", "response_timeout", "stream_idle_timeout", "upstream_response_timeout", "upstream_per_try_timeout",
		"upstream_max_stream_duration_reached", "upstream_reset_before_response_started{connection_termination}"} {
		g := startGateway(t, 1, twoReplicas+oneFailure)
		home := replicaOf(g.answered(0, "s", told{status: 504, details: details}))
		if !g.health(home).Cooling() {
			t.Errorf("%s: no failure", details)
		}
	}
}

// A request that the gateway's circuit breaker keeps back has reached no replica,
// although the gateway tells of the one that it was for: overload moves no session.
func TestOverflowIsNoFailure(t *testing.T) {
	const overflow = "upstream_reset_before_response_started{overflow}"
	g := startGateway(t, 1, twoReplicas+oneFailure)
	home := replicaOf(g.answered(0, "s", told{status: 503, details: overflow, attempts: "1"}))
	if h := g.health(home); *h != (policy.Health{}) {
		t.Errorf("%+v", h)
	}
	spare := "10.0.0.1:8000"
	if spare == home {
		spare = "10.0.0.2:8000"
	}
	// The first attempt failed; the retry was kept back.
	g.answered(0, "s", told{status: 503, details: overflow, attempts: "2", upstream: spare})
	if !g.health(home).Cooling() || *g.health(spare) != (policy.Health{}) {
		t.Errorf("home %+v, spare %+v", g.health(home), g.health(spare))
	}

	// The first attempt failed; the retry found no host, so the first is told.
	g = startGateway(t, 1, twoReplicas+oneFailure)
	home = replicaOf(g.answered(0, "s", told{status: 503, details: "no_healthy_upstream", attempts: "2"}))
	if !g.health(home).Cooling() {
		t.Error("a failure without a retry's host is forgotten")
	}
}

// Where a worker has many answers it reads some, until one tells of a failure.
func TestManyAnswersAreSampled(t *testing.T) {
	g := startGateway(t, 1, twoReplicas)
	home := replicaOf(g.answered(0, "s", told{status: 200}))
	const requests = answersRead + answersSample - 1 // with the first one, a whole number of samples beyond those read
	calls := func() int {
		n := 0
		g.OnHostCall(func(_ int, name string) (hostsim.Status, bool) {
			if name == "env.proxy_get_header_map_pairs" {
				n++
			}
			return 0, false
		})
		defer g.OnHostCall(nil)
		for range requests {
			g.answered(0, "s", told{status: 200})
		}
		return n
	}
	if n := calls(); n != requests+answersRead-1+(requests-answersRead+1)/answersSample {
		t.Errorf("%d reads of %d requests, and of their answers the first %d and one in %d", n, requests, answersRead-1, answersSample)
	}
	if n := calls(); n != requests+requests/answersSample {
		t.Errorf("%d reads of %d requests, want one in %d of their answers besides", n, requests, answersSample)
	}
	failed := 0
	for ; replicaOf(g.answered(0, "s", told{status: 503})) == home; failed++ {
		if failed > answersSample+3 {
			t.Fatal("the session stays")
		}
	}
	if failed < 3 {
		t.Errorf("the session moved after %d failures", failed)
	}
}

// A replica whose connections are refused fails although the gateway's retry hides
// it from the client; the spare that answered is well (traefik/traefik#7886).
func TestARetryThatSucceedsIsTheFirstHostsFailure(t *testing.T) {
	g := startGateway(t, 1, threeReplicas)
	home := replicaOf(g.answered(0, "s", told{status: 200, attempts: "1"}))
	spare := "10.0.0.1:8000"
	if spare == home {
		spare = "10.0.0.2:8000"
	}
	for i := range 3 {
		if got := replicaOf(g.answered(0, "s", told{status: 200, upstream: spare, attempts: "2"})); got != home {
			t.Errorf("turn %d went to %s", i, got)
		}
	}
	if *g.health(spare) != (policy.Health{}) || !g.health(home).Cooling() {
		t.Errorf("home %+v, spare %+v", g.health(home), g.health(spare))
	}
	if got := replicaOf(g.answered(0, "s", told{status: 200})); got != spare {
		t.Errorf("the session is at %s, its cache at %s", got, spare)
	}
	g.Advance(2 * tick)
	if n := g.Metric("pinwheel_fallbacks_total.pool.default"); n != 3 {
		t.Errorf("%d fallbacks, want 3", n)
	}
	if n := g.Metric("pinwheel_failovers_total.pool.default.reason.followed"); n != 1 {
		t.Errorf("%d pins followed, want 1", n)
	}
}

// All that were asked have failed, and the last answered for them.
func TestARetryThatFailsIsBothHostsFailure(t *testing.T) {
	g := startGateway(t, 1, twoReplicas+oneFailure)
	home := replicaOf(g.answered(0, "s", told{status: 200}))
	spare := "10.0.0.1:8000"
	if spare == home {
		spare = "10.0.0.2:8000"
	}
	g.answered(0, "s", told{status: 503, upstream: spare, attempts: "2"})
	if !g.health(home).Cooling() || !g.health(spare).Cooling() {
		t.Errorf("home %+v, spare %+v", g.health(home), g.health(spare))
	}
}

// Nothing is cached of a session where its turn failed, too.
func TestNoPinFollowsAFailure(t *testing.T) {
	g := startGateway(t, 1, twoReplicas+`,"health":{"failures":2}`)
	home := replicaOf(g.answered(0, "s", told{status: 500}))
	spare := "10.0.0.1:8000"
	if spare == home {
		spare = "10.0.0.2:8000"
	}
	g.answered(0, "s", told{status: 503, upstream: spare, attempts: "2"})
	if !g.health(home).Cooling() || g.health(spare).Cooling() || g.open()[home] != 1 {
		t.Errorf("home %+v, spare %+v, sessions %v", g.health(home), g.health(spare), g.open())
	}
}
