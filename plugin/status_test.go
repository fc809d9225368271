package plugin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/version"
	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// statusOf is the JSON of a status.
type statusOf struct {
	Policy string
	Pools  []struct {
		Name, Cluster, Policy string
		Replicas              []replicaStatus
	}
	Totals   map[string]int
	Versions map[string]any
}

type replicaStatus struct {
	Address, State string
	Health         struct {
		Failures  int
		Cooldown  int `json:"cooldown_ms"`
		Remaining int `json:"remaining_ms"`
	}
	Weight       int
	OpenSessions int `json:"open_sessions"`
	Inflight     int
	Placements   int
	Drain        bool
	Empty        *bool
}

func (g *gateway) status(query string) (s statusOf) {
	g.t.Helper()
	text := g.operator("GET", "/pinwheel/status"+query, 200, right)
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		g.t.Fatalf("%v in %s", err, text)
	}
	for _, p := range s.Pools {
		for _, r := range p.Replicas {
			if n := strings.Count(text, "\n{\"address\":\""+r.Address); n < 1 {
				g.t.Errorf("%s begins no line in %s", r.Address, text)
			}
		}
	}
	return s
}

func (s replicaStatus) String() string {
	text := fmt.Sprint(s.Address, " ", s.State, " weight ", s.Weight, " open ", s.OpenSessions, " running ", s.Inflight, " placed ", s.Placements)
	if s.Drain {
		text += " drain"
	}
	if s.Empty != nil {
		text += fmt.Sprint(" empty ", *s.Empty)
	}
	return text
}

func (g *gateway) mustShow(query string, want ...string) {
	g.t.Helper()
	var got []string
	for _, p := range g.status(query).Pools {
		for _, r := range p.Replicas {
			got = append(got, strings.ReplaceAll(r.String(), "10.0.0.", "")) // a host's last number
		}
	}
	if !slices.Equal(got, want) {
		g.t.Errorf("status shows\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

func TestStatus(t *testing.T) {
	g := startGateway(t, 2, `"replicas":["10.0.0.1:1",{"address":"10.0.0.2:1","weight":2,"state":"draining"},
		{"address":"10.0.0.3:1","state":"unhealthy"},"10.0.0.4:1"],"session":{"max_sessions":7}`+withAdmin)
	for i := range 4 {
		g.turn(fmt.Sprint("s", i))
	}
	var running []*hostsim.Stream
	for w := range 2 {
		running = append(running, g.begin(w, "s0"))
	}
	home, other := replicaOf(running[0]), "10.0.0.4:1"
	if home == other {
		other = "10.0.0.1:1"
	}
	g.Advance(2 * tick)
	line := func(address, state string, n int, rest string) string {
		return strings.TrimPrefix(address, "10.0.0.") + fmt.Sprintf(" %s weight 1 open 2 running %d placed 2", state, n) + rest
	}
	inOrder := func(a, b string) []string {
		if home > other {
			a, b = b, a
		}
		return []string{a, "2:1 draining weight 2 open 0 running 0 placed 0 empty true", "3:1 unhealthy weight 1 open 0 running 0 placed 0", b}
	}
	for range 2 { // either worker
		g.mustShow("", inOrder(line(home, "active", 2, ""), line(other, "active", 0, ""))...)
	}
	s := g.status("?pool=default")
	if s.Policy != "sticky_least_loaded" || s.Pools[0].Policy != s.Policy || s.Pools[0].Name != "default" || s.Pools[0].Cluster != "" {
		t.Errorf("%+v", s)
	}
	if got, want := fmt.Sprint(s.Totals), "map[inflight:2 max_sessions:7 open_sessions:4 placements:4]"; got != want {
		t.Errorf("totals %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(s.Versions), fmt.Sprintf("map[abi:0.2.1 pinwheel:%s schema:%d]", version.Number, schemaVersion); got != want {
		t.Errorf("versions %s, want %s", got, want)
	}

	g.ordered("POST", "drain?replica="+home, 200)
	g.mustShow("", inOrder(line(home, "draining", 2, " drain empty false"), line(other, "active", 0, ""))...)
	g.ordered("POST", "reset", 200)
	lines := g.status("").Pools[0].Replicas
	i := slices.IndexFunc(lines, func(r replicaStatus) bool { return r.Address == home })
	if r := lines[i]; len(lines) != 4 || r.OpenSessions != 0 || r.Inflight != 2 || r.Placements != 0 || *r.Empty {
		t.Errorf("after a reset: %v", lines)
	}
	for _, s := range running {
		g.end(s, hostsim.EndNormal)
	}
	g.Advance(40 * tick)
	if r := g.status("").Pools[0].Replicas; len(r) != 4 || !slices.ContainsFunc(r, func(r replicaStatus) bool { return r.Address == home && *r.Empty }) {
		t.Errorf("after all has ended: %v", r)
	}
}

// A removed replica shows while it has anything.
func TestStatusOfARemovedReplica(t *testing.T) {
	g := startGateway(t, 1, `"replicas":["10.0.0.1:1"]`+withAdmin)
	g.turn("s0")
	if err := g.reconfigure(`"replicas":["10.0.0.2:1"]` + withAdmin); err != nil {
		t.Fatal(err)
	}
	const member = "2:1 active weight 1 open 0 running 0 placed 0"
	g.mustShow("", "1:1 removed weight 1 open 1 running 0 placed 1", member)
	g.release("s0")
	g.mustShow("", member)
	if err := g.reconfigure(`"replicas":[]` + withAdmin); err != nil {
		t.Fatal(err)
	}
	g.mustShow("")
}

// What runs at a host that was removed, and added again since, is shown once.
func TestStatusOfAHostThatIsBack(t *testing.T) {
	g := startGateway(t, 1, `"replicas":["10.0.0.1:1"]`+withAdmin)
	g.begin(0, "s0")
	for _, port := range []string{"2", "1"} {
		if err := g.reconfigure(`"replicas":["10.0.0.` + port + `:1"]` + withAdmin); err != nil {
			t.Fatal(err)
		}
	}
	g.Advance(2 * tick)
	g.mustShow("", "1:1 removed weight 1 open 1 running 1 placed 1", "1:1 active weight 1 open 0 running 0 placed 0")
}

func TestStatusTellsTheHealth(t *testing.T) {
	g := startGateway(t, 1, `"replicas":["10.0.0.1:1"],"health":{"failures":2,"cooldown":"10s"}`+withAdmin)
	want := func(state string, failures, cooldown, remaining int) {
		t.Helper()
		r := g.status("").Pools[0].Replicas[0]
		if h := r.Health; r.State != state || h.Failures != failures || h.Cooldown != cooldown || h.Remaining != remaining {
			t.Errorf("status shows %s %+v, want %s, %d failures, %d of %d ms", r.State, h, state, failures, remaining, cooldown)
		}
	}
	fails := func(status int) {
		r := turnOf("s")
		r.Upstream, r.Response.Status = "10.0.0.1:1", status
		g.on(0, r)
	}
	want("active", 0, 0, 0)
	fails(503)
	want("active", 1, 0, 0)
	fails(503)
	want("cooling", 0, 10_000, 10_000)
	g.Advance(4 * tick)
	want("cooling", 0, 10_000, 6_000)
	g.Advance(10 * tick)
	want("cooling", 0, 10_000, 0)
	fails(200)
	want("active", 0, 0, 0)
}

// One failure begins another cool-down where the last one ended unproven.
func TestStatusTellsAnUnprovenReplica(t *testing.T) {
	p := pool{store: newStore(newMemoryData(), PoolConfig{Name: "p", Members: addresses(2)}, testSession(10))}
	p.store.health = policy.HealthRule{Failures: 3, Cooldown: 1000, MaxCooldown: 1000}
	r := &p.store.view.Replicas
	for id := range uint32(2) {
		for range 3 {
			r.Fail(id+1, 0, 0, p.store.health)
		}
	}
	r.Succeed(1, 1)
	if got := p.healthJSON(&r.List[1].Health, 1); got != `"failures":2,"cooldown_ms":0,"remaining_ms":0` {
		t.Error(got)
	}
}
