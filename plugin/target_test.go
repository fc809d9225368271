package plugin

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

const targetHeader = "x-gateway-destination-endpoint"

// spareList is what policy says of a session's fallback hosts.
func (g *gateway) spareList(id, primary string, n int) (list []string) {
	r := g.record("default").Replicas
	at := slices.IndexFunc(r.List, func(c policy.Replica) bool { return c.Address == primary })
	for _, i := range new(policy.Slots).Spares(nil, &r, policy.NewKey(policy.Secret{}, []byte(id)), at, n, 0) {
		list = append(list, r.List[i].Address)
	}
	return list
}

func TestTargetNamesSpares(t *testing.T) {
	for spares := 0; spares <= policy.MaxSpares; spares++ {
		for _, n := range []int{2, 12} {
			g := startGateway(t, 2, replicas(n)+fmt.Sprintf(`,"target":{"spares":%d}`, spares))
			orders := map[string]bool{}
			for i := range 12 {
				id := fmt.Sprint("s", i%6)
				r := g.turn(id)
				want := append([]string{r.replica}, g.spareList(id, r.replica, spares)...)
				if got := strings.Split(r.target, ","); !slices.Equal(got, want) || len(got) != min(1+spares, n) {
					t.Errorf("%d spares of %d replicas: %v, want %v", spares, n, got, want)
				}
				orders[r.target] = true
			}
			if n == 12 && spares > 1 && len(orders) < 4 {
				t.Errorf("six sessions, %d orders: spares do not depend on the session", len(orders))
			}
		}
	}
}

// What is kept of targets is what would be made of the replicas as they are now.
func TestKeptTargetsFollowThePool(t *testing.T) {
	const most = policy.FewReplicas + 4
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		data := newMemoryData()
		ours := newPool(data, PoolConfig{Name: "p", Members: addresses(1 + rng.IntN(most))}, benchConfig(1000), 1)
		theirs := newPool(data, PoolConfig{Name: "p", Members: ours.store.members}, benchConfig(1000), 2)
		rule := policy.HealthRule{Failures: 1, Cooldown: 10, MaxCooldown: 10}
		kept := 0
		for now := int64(1000); now < 1600; now++ {
			p := []*pool{ours, theirs}[rng.IntN(2)]
			key := keyOf(fmt.Sprint(rng.IntN(20)))
			some := func(r *policy.Replicas) *policy.Replica { return &r.List[rng.IntN(len(r.List))] }
			p.store.current(now)
			switch rng.IntN(40) {
			case 0:
				p.store.change(func(r *policy.Replicas) bool { some(r).Drained = rng.IntN(2) == 0; return true })
			case 1:
				p.store.change(func(r *policy.Replicas) bool { return r.Fail(some(r).ID, now, now, rule) })
			case 2, 3:
				p.store.change(func(r *policy.Replicas) bool { return r.Succeed(some(r).ID, now) })
			case 4:
				members := addresses(1 + rng.IntN(most))
				members[rng.IntN(len(members))].State = policy.State(rng.IntN(3))
				p.store.change(func(r *policy.Replicas) bool { return r.Apply(members, now, 0) })
			case 5:
				p.store.change(func(r *policy.Replicas) bool { r.Reset(now); return true })
			case 6:
				p.store.forgetRemoved(nil, 0, now)
			case 7:
				p.store.view.changed()
			case 8:
				p.store.refresh()
			case 9:
				delete(data.values, p.store.recordKey()) // as a gateway's process that is another
				delete(data.cas, p.store.recordKey())
			case 10: // and another worker begins anew, with another order of as many
				other := &record{shards: p.store.view.shards, membership: p.store.view.membership}
				members := addresses(len(p.store.view.List))
				slices.Reverse(members)
				other.Apply(members, now, 0)
				data.values[p.store.recordKey()] = bytes.Clone(other.text())
				p.store.refresh()
			}
			d := p.decide(key, true, 0, nil, now)
			got := strings.Clone(p.targetOf(d, key, now))
			want := ""
			if i := p.store.view.Index(d.Replica); i >= 0 {
				fresh := targets{spares: 2}
				want = fresh.make(&p.store.view.Replicas, key, i, true, now)
			}
			if got != want {
				t.Fatalf("seed %d at %d: %q, want %q, of %d replicas", seed, now, got, want, len(p.store.view.List))
			}
			if len(p.targets.kept) > 0 {
				kept++
			}
		}
		if kept == 0 && seed == 0 {
			t.Error("no target was ever kept")
		}
	}
}

func TestSparesMayTakeSessions(t *testing.T) {
	g := startGateway(t, 2, `"target":{"spares":8},"replicas":["10.0.0.1:8000",{"address":"10.0.0.2:8000","state":"draining"},
		{"address":"10.0.0.3:8000","state":"unhealthy"},"10.0.0.4:8000","[fd00::5]:8000"]`)
	for i := range 20 {
		r := g.turn(fmt.Sprint(i))
		hosts := strings.Split(r.target, ",")
		slices.Sort(hosts)
		if want := []string{"10.0.0.1:8000", "10.0.0.4:8000", "[fd00::5]:8000"}; !slices.Equal(hosts, want) {
			t.Fatalf("hosts %v, want each of %v once", hosts, want)
		}
	}
}

func TestTargetInBase64(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: shipped, Build: "make wasm", Workers: 2,
		Config: `{"target":{"encoding":"base64"},"replicas":["10.0.0.1:8000","[fd00::2]:8000"]}`})
	seen := map[string]int{}
	for i := range 8 {
		r := h.Do(i%2, turnOf(fmt.Sprint("s", i), [2]string{targetHeader, base64.StdEncoding.EncodeToString([]byte("6.6.6.6:1"))}))
		values := r.Request.Values(targetHeader)
		if len(values) != 1 {
			t.Fatalf("values %q", values)
		}
		host, err := base64.StdEncoding.DecodeString(values[0])
		if err != nil {
			t.Error(err)
		}
		seen[string(host)]++
	}
	if seen["10.0.0.1:8000"] != 4 || seen["[fd00::2]:8000"] != 4 || len(seen) != 2 {
		t.Errorf("hosts %v", seen)
	}
}

// agentgateway/agentgateway#3144: a client sets the destination itself.
func TestClientsDoNotSteer(t *testing.T) {
	const evil = "127.0.0.1:9901"
	forms := [][][2]string{
		{{targetHeader, evil}},
		{{targetHeader, "10.0.0.2:8000"}},
		{{targetHeader, "localhost"}},
		{{targetHeader, ""}},
		{{targetHeader, evil}, {targetHeader, "10.0.0.2:8000"}},
		{{"X-Gateway-Destination-Endpoint", evil}, {targetHeader, evil}},
		{{"x_gateway_destination_endpoint", evil}},
		{{"x_gateway_destination_endpoint", evil}, {targetHeader, evil}},
		{{targetHeader, "\xc0\xa7" + strings.Repeat("x", 70_000)}},
	}
	for what, c := range map[string]struct {
		config  string
		request hosttest.Request
		hosts   int // that may be named; 0: the header must be gone
	}{
		"keyed":              {twoReplicas, turnOf("s"), 2},
		"keyless":            {twoReplicas, hosttest.Request{}, 2},
		"oversized":          {twoReplicas, turnOf(strings.Repeat("x", 300)), 2},
		"table full":         {twoReplicas + `,"session":{"max_sessions":1}`, turnOf("s"), 2},
		"no replica":         {`"replicas":[]`, turnOf("s"), 0},
		"no replica, no key": {`"replicas":[]`, hosttest.Request{}, 0},
		"no pool":            {twoPools, in("c9", turnOf("s")), 0},
		"no cluster":         {twoPools, turnOf("s"), 0},
		"not the release":    {twoReplicas, post("/finish_session/"), 2},
		"releases off":       {twoReplicas + `,"release":{"path":""}`, post("/finish_session"), 2},
	} {
		t.Run(what, func(t *testing.T) {
			g := startGateway(t, 2, c.config)
			g.do(in("c1", turnOf("first")))
			for _, form := range forms {
				r := c.request
				r.Headers = append(slices.Clone(r.Headers), form...)
				got := g.do(r)
				values := got.Request.Values(targetHeader)
				switch {
				case got.Status != 200:
					t.Errorf("%q: status %d", form, got.Status)
				case c.hosts == 0 && len(values) != 0:
					t.Errorf("%q: target %q left standing", form, values)
				case c.hosts > 0 && (len(values) != 1 || len(strings.Split(values[0], ",")) != c.hosts):
					t.Errorf("%q: targets %q", form, values)
				}
				for _, v := range values {
					for _, host := range strings.Split(v, ",") {
						if host != "10.0.0.1:8000" && host != "10.0.0.2:8000" {
							t.Errorf("%q: sent to %q, which is not configured", form, host)
						}
					}
				}
			}
		})
	}
}

func TestClientsDoNotSteerASession(t *testing.T) {
	g := startGateway(t, 2, threeReplicas)
	home := g.turn("s").replica
	for _, other := range []string{"10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"} {
		if r := g.turn("s", [2]string{targetHeader, other}); r.replica != home || r.reason != "pinned" {
			t.Errorf("asked for %s: %s on %s, want pinned on %s", other, r.reason, r.replica, home)
		}
	}
}

func TestTargetHeaderIsConfigurable(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: shipped, Build: "make wasm", Workers: 2, Config: `{` + twoReplicas + `,"target":{"header":"X-Host"}}`})
	r := h.Do(0, turnOf("s", [2]string{"x-host", "6.6.6.6:1"}, [2]string{targetHeader, "6.6.6.6:1"}))
	if got := r.Request.Values("x-host"); len(got) != 1 || !strings.HasPrefix(got[0], "10.0.0.") {
		t.Errorf("x-host %q", got)
	}
}

func TestWithoutDebugHeadersTheClientLearnsNothing(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: shipped, Build: "make wasm", Workers: 2, Config: `{` + twoReplicas + `}`})
	r := h.Do(0, turnOf("s"))
	if want := (hostsim.Headers{{":status", "200"}}); !slices.Equal(r.Response, want) {
		t.Errorf("response headers %v, want %v", r.Response, want)
	}
}

// ai-dynamo/dynamo#10920: the session id was lost on the way. Nothing but the
// target is added to a request, and nothing is taken from it.
func TestRequestsPassUntouched(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	sent := append(turnHeaders("a b"), [2]string{"x-session-id", "second"}, [2]string{"x-pinwheel-secret", "s"}, [2]string{"cookie", "\xff"})
	s := g.Worker(0).NewStream()
	if _, err := s.RequestHeaders(sent, true); err != nil {
		t.Fatal(err)
	}
	got := s.Headers(hostsim.MapRequestHeaders)
	if want := append(slices.Clone(sent), [2]string{targetHeader, got.Value(targetHeader)}); !slices.Equal(got, want) {
		t.Errorf("headers %q, want %q", got, want)
	}
	g.end(s, hostsim.EndNormal)
}

// ai-dynamo/dynamo#10920, two filters in one chain, a gateway's and a sidecar's: the
// second sees the session's id as the client sent it, and its own pool: neither counts
// for the other, however often the session comes.
func TestASecondFilterBehindTheFirst(t *testing.T) {
	data := hostsim.NewSharedData() // of one process
	start := func(pool, host string) *gateway {
		return startWith(t, hosttest.Options{Workers: 2, Adjust: func(c *hostsim.Config) { c.SharedData = data }},
			`"pools":[{"name":"`+pool+`","replicas":["`+host+`.1:8000","`+host+`.2:8000"]}]`)
	}
	first, second := start("gateway", "10.0.0"), start("sidecar", "10.0.1")
	var homes [2]string
	for turn := range 6 {
		outer := first.Worker(turn % 2).NewStream()
		if _, err := outer.RequestHeaders(append(turnHeaders("s"), [2]string{"cookie", "a"}), true); err != nil {
			t.Fatal(err)
		}
		inner := second.Worker(turn % 2).NewStream()
		if _, err := inner.RequestHeaders(outer.Headers(hostsim.MapRequestHeaders), true); err != nil {
			t.Fatal(err)
		}
		got := inner.Headers(hostsim.MapRequestHeaders)
		if ids, targets := got.Values("x-session-id"), got.Values(targetHeader); len(ids) != 1 || ids[0] != "s" || len(targets) != 1 {
			t.Errorf("turn %d: ids %q, targets %q", turn, ids, targets)
		}
		at := [2]string{replicaOf(outer), replicaOf(inner)}
		if turn == 0 {
			homes = at
		}
		if at != homes || !strings.HasPrefix(at[0], "10.0.0.") || !strings.HasPrefix(at[1], "10.0.1.") {
			t.Errorf("turn %d: on %v, want %v", turn, at, homes)
		}
		first.Advance(2 * tick)
		second.Advance(2 * tick)
		for g, pool := range map[*gateway]string{first: "gateway", second: "sidecar"} {
			if n, running := g.sessions(pool), g.Metric("pinwheel_inflight.pool."+pool+".replica."+at[map[*gateway]int{second: 1}[g]]); n != 1 || running != 1 {
				t.Errorf("turn %d: %s has %d sessions and %d running requests, want 1 each", turn, pool, n, running)
			}
		}
		second.end(inner, hostsim.EndNormal)
		first.end(outer, hostsim.EndNormal)
	}
}
