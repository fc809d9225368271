package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// told is how the gateway tells that a turn went.
type told struct {
	status   int
	upstream string // "" is none: the host that was named answers
	attempts string // "" is no header
	unrouted bool   // no host was asked
	details  string // of the answer, as Envoy's response.code_details has them; "" is none
}

// answered sends a turn, or a keyless request if the id is "", and has it answered.
func (g *gateway) answered(worker int, id string, o told) *hostsim.Stream {
	g.t.Helper()
	s := g.begin(worker, id)
	if o.upstream == "" {
		o.upstream = replicaOf(s)
	}
	if !o.unrouted {
		s.SetProperty("upstream.address", []byte(o.upstream))
	}
	if o.details != "" {
		s.SetProperty("response.code_details", []byte(o.details))
	}
	h := hostsim.Headers{{":status", fmt.Sprint(o.status)}}
	if o.attempts != "" {
		h.Add("x-envoy-attempt-count", o.attempts)
	}
	if _, err := s.ResponseHeaders(h, true); err != nil {
		g.t.Error(err)
	}
	g.end(s, hostsim.EndNormal)
	return s
}

func (g *gateway) health(address string) *policy.Health {
	g.t.Helper()
	for _, c := range g.record("default").List {
		if c.Address == address {
			return &c.Health
		}
	}
	g.t.Fatalf("no replica %s", address)
	return nil
}

const oneFailure = `,"health":{"failures":1}`

// Cool-downs that began together end together, and what was asked before comes
// after. No replica has shown a failure of its own: were the first to answer alone
// well, all sessions would move there.
func TestAnOutageEndsForAllAtOnce(t *testing.T) {
	g := startGateway(t, 1, threeReplicas+oneFailure)
	homes := map[string]string{}
	for _, id := range []string{"a", "b", "c"} {
		homes[id] = replicaOf(g.answered(0, id, told{status: 500}))
	}
	g.Advance(9 * time.Second)
	s := g.begin(0, "a")
	s.SetProperty("upstream.address", []byte(replicaOf(s)))
	g.Advance(2 * time.Second)
	if _, err := s.ResponseHeaders(hostsim.Headers{{":status", "200"}}, true); err != nil {
		t.Error(err)
	}
	g.end(s, hostsim.EndNormal)
	for id, home := range homes {
		if r := g.turn(id); r.reason != "pinned" || r.replica != home {
			t.Errorf("%s of %s: %s on %s, which is %+v", id, home, r.reason, r.replica, g.health(home))
		}
	}
}

// A cool-down is told once, by a line and a gauge, and so is a pin that follows.
func TestWhatHealthTells(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"decision_log":{"enabled":true},"health":{"failures":2,"cooldown":"5s"}`)
	home := replicaOf(g.answered(0, "s", told{status: 200}))
	other := map[string]string{"10.0.0.1:8000": "10.0.0.2:8000", "10.0.0.2:8000": "10.0.0.1:8000"}[home]
	for w := range 2 {
		g.answered(w, "s", told{status: 200, upstream: other, attempts: "2"})
	}
	g.answered(0, "s", told{status: 200})
	var told, followed int
	for _, l := range g.Logs() {
		if l.Level == hostsim.LogWarn && strings.Contains(l.Message, "pool default: "+home+" fails and is left alone for 5s") {
			told++
		}
		if strings.Contains(l.Message, `"reason":"followed","replica":"`+other+`"}`) {
			followed++
		}
	}
	if told != 1 || followed != 1 {
		t.Errorf("%d cool-downs told and %d pins that followed, want one each", told, followed)
	}
	g.Advance(2 * tick)
	const gauge = "pinwheel_cooling.pool.default.replica."
	if a, b := g.Metric(gauge+home), g.Metric(gauge+other); a != 1 || b != 0 {
		t.Errorf("cooling: %d and %d, want 1 and 0", a, b)
	}
}

// A worker learns of another's failures at its own next failure, placement or
// tick.
func TestWorkersShareHealth(t *testing.T) {
	g := startGateway(t, 3, twoReplicas)
	home := replicaOf(g.answered(0, "s", told{status: 200}))
	for w := range 3 {
		g.answered(w, "s", told{status: 500})
	}
	if h := g.health(home); !h.Cooling() {
		t.Fatalf("three failures on three workers: %+v", h)
	}
	g.Advance(2 * tick)
	for w := range 3 {
		if got := replicaOf(g.answered(w, "s", told{status: 200})); got == home {
			t.Errorf("worker %d sends the session to %s still", w, got)
		}
	}
}

// However many ask at once, one session is the trial of a replica whose cool-down
// is over; and one request of those that get no pin.
func TestOneTrialOverAllWorkers(t *testing.T) {
	for _, keyless := range []bool{false, true} {
		g := startGateway(t, 3, threeReplicas+`,"health":{"failures":1,"cooldown":"1m","max_cooldown":"1m"}`)
		failed := replicaOf(g.answered(0, "s", told{status: 500}))
		g.release("s")
		g.Advance(61 * time.Second)
		trials := 0
		workers := make([]func(*hostsim.Worker), 3)
		for w := range workers {
			workers[w] = func(*hostsim.Worker) {
				for i := range 10 {
					id := fmt.Sprintf("new-%d-%d", w, i)
					if keyless {
						id = ""
					}
					if replicaOf(g.begin(w, id)) == failed {
						trials++
					}
				}
			}
		}
		g.Interleave(5, workers...)
		if trials != 1 || !g.health(failed).Probing {
			t.Errorf("keyless %v: %d trials, %+v", keyless, trials, g.health(failed))
		}
	}
}

// A configuration without health takes over a pool in which a replica cools down:
// nothing would ever end that, and each of its sessions leave it for good.
func TestHealthThatIsTurnedOffLeavesNobodyCooling(t *testing.T) {
	g := startGateway(t, 1, twoReplicas+`,"health":{"failures":1,"cooldown":"1m","max_cooldown":"1m"}`)
	failed := replicaOf(g.answered(0, "s", told{status: 500}))
	if err := g.reconfigure(twoReplicas + `,"health":{"failures":0}`); err != nil {
		t.Fatal(err)
	}
	g.Advance(61 * time.Second)
	if got := replicaOf(g.answered(0, "trial", told{status: 200})); got != failed {
		t.Fatalf("the trial goes to %s", got)
	}
	if h := g.health(failed); *h != (policy.Health{}) {
		t.Errorf("after an answer: %+v", h)
	}
	if got := replicaOf(g.answered(0, "trial", told{status: 200})); got != failed {
		t.Errorf("the session left for %s", got)
	}
}

// A replica that the pool lists anew while a turn runs there is the host that was
// asked: no fallback, and no reason to move a session.
func TestAnAnswerAfterAResetIsNoFallback(t *testing.T) {
	g := startGateway(t, 1, twoReplicas+withAdmin)
	for _, attempts := range []string{"1", "2"} {
		s := g.begin(0, "s")
		g.ordered("POST", "reset", 200)
		s.SetProperty("upstream.address", []byte(replicaOf(s)))
		status := map[string]string{"1": "503", "2": "200"}[attempts]
		if _, err := s.ResponseHeaders(hostsim.Headers{{":status", status}, {"x-envoy-attempt-count", attempts}}, true); err != nil {
			t.Error(err)
		}
		g.end(s, hostsim.EndNormal)
		if r := g.turn("s"); r.reason != "placed" {
			t.Errorf("attempt %s: the session that the reset ended is %s", attempts, r.reason)
		}
	}
	g.Advance(2 * tick)
	if n := g.Metric("pinwheel_fallbacks_total.pool.default"); n != 0 {
		t.Errorf("%d fallbacks, want 0", n)
	}
}

// Health is looked at in one host call, whatever was configured; a replica that is
// well costs no write.
func TestWhatHealthCostsATurn(t *testing.T) {
	calls := func(config string) map[string]uint64 {
		g := startGateway(t, 1, twoReplicas+config)
		g.answered(0, "s", told{status: 200, attempts: "1"})
		before := g.Counters().HostCalls
		g.answered(0, "s", told{status: 200, attempts: "1"})
		after := g.Counters().HostCalls
		for name, n := range before {
			after[name] -= n
		}
		return after
	}
	with, without := calls(""), calls(`,"health":{"failures":0}`)
	with["env.proxy_get_header_map_pairs"]--
	for name, n := range with {
		if n != without[name] {
			t.Errorf("%s: %d calls, %d without health", name, n, without[name])
		}
	}
}

func TestPanicsAreCounted(t *testing.T) {
	g := startGateway(t, 1, `"replicas":[{"address":"10.0.0.1:1","state":"unhealthy"}]`)
	g.turn("s")
	g.turn("s")
	g.keyless()
	g.Advance(2 * tick)
	if n := g.Metric("pinwheel_panics_total.pool.default"); n != 3 {
		t.Errorf("%d panics, want 3", n)
	}
}

func TestRecordKeepsHealth(t *testing.T) {
	var want record
	want.shards = 4
	want.Apply(addresses(4), 0, 0)
	want.List[0].Health = policy.Health{Failures: 2}
	want.List[2].Health = policy.Health{Failures: 65534, Probing: true, Cooldown: 1, Since: 2 << 40, Until: 3 << 40}
	want.List[2].Joining = true
	text := want.encode(nil)
	var got record
	got.Apply(addresses(4), 0, 0)
	got.List[1].Health = policy.Health{Failures: 9} // of an earlier reading
	if err := got.decode(text); err != nil {
		t.Fatal(err)
	}
	for i := range want.List {
		if got.List[i] != want.List[i] {
			t.Errorf("got  %+v\nwant %+v", got.List[i], want.List[i])
		}
	}
	for n := range len(text) {
		if err := got.decode(text[:n]); err == nil {
			t.Errorf("%d of %d bytes are a record", n, len(text))
		}
	}
}

// higress-group/higress#3255: a replica that fails at once looked least loaded. b
// answers 503 after 2 ms, the others after 2 s; 200 new sessions come at 20 a second.
// b gets those that begin its cool-down, and trials. Then d comes, of which nothing is
// known; then a goes, and leaves nothing behind.
func TestFastFailuresAttractNobody(t *testing.T) {
	const a, b, d = "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.4:8000"
	for _, name := range policyNames {
		g := startGateway(t, 2, threeReplicas+named(name))
		counts, ends := map[string]int{}, map[int][]*hostsim.Stream{}
		step := 0
		run := func(sessions int) {
			for range sessions {
				for _, s := range ends[step] {
					g.end(s, hostsim.EndNormal)
				}
				delete(ends, step)
				s := g.begin(step%2, fmt.Sprint("s", step))
				at, status := replicaOf(s), "200"
				if counts[at]++; at == b {
					status = "503"
					g.Advance(2 * time.Millisecond)
				}
				s.SetProperty("upstream.address", []byte(at))
				s.SetProperty("response.code_details", []byte("via_upstream"))
				if _, err := s.ResponseHeaders(hostsim.Headers{{":status", status}}, at == b); err != nil {
					t.Fatal(err)
				}
				if at == b {
					g.end(s, hostsim.EndNormal)
				} else {
					ends[step+40] = append(ends[step+40], s)
				}
				g.Advance(50 * time.Millisecond)
				step++
			}
		}
		run(200)
		// Three failures, two more by a worker that has not heard, and a trial after 10 s.
		if n := counts[b]; n > 6 || n == 0 {
			t.Errorf("%s: b got %d of 200", name, n)
		}
		if err := g.reconfigure(replicas(4) + named(name)); err != nil {
			t.Fatal(err)
		}
		if run(200); counts[d] < 30 {
			t.Errorf("%s: d got %d of the next 200", name, counts[d])
		}
		for _, open := range ends {
			for _, s := range open {
				g.end(s, hostsim.EndNormal)
			}
		}
		for i := range step {
			g.release(fmt.Sprint("s", i))
		}
		keys := g.keysButShards()
		if err := g.reconfigure(`"replicas":["` + b + `","10.0.0.3:8000","` + d + `"]` + named(name)); err != nil {
			t.Fatal(err)
		}
		g.turn("last") // in the configuration's own connection
		g.Drain()
		g.Advance(3 * time.Minute)
		for _, c := range g.record("default").List {
			if c.Address == a {
				t.Errorf("%s: the removed replica is left: %+v", name, c)
			}
		}
		if n := g.gauge("inflight", a); n != 0 {
			t.Errorf("%s: %d running requests on the removed replica", name, n)
		}
		if n := g.keysButShards(); n > keys {
			t.Errorf("%s: %d keys, before %d", name, n, keys)
		}
	}
}

// keysButShards counts the keys in shared data that are no sessions'.
func (g *gateway) keysButShards() (n int) {
	for _, key := range g.SharedData().Keys() {
		if !strings.Contains(key, "/s/") {
			n++
		}
	}
	return n
}
