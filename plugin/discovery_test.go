package plugin

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// admin plays the gateway's admin interface behind the cluster envoy_admin.
type admin struct {
	// answer is what it says now; without headers it breaks the connection.
	answer hostsim.HTTPResponse
	// mute keeps it from answering at all.
	mute bool
	// asked are the threads that asked, in order, and path is what for.
	asked []int
	path  string
}

func (a *admin) call(c *hostsim.HTTPCall) bool {
	if c.Cluster != "envoy_admin" {
		return false
	}
	a.asked, a.path = append(a.asked, c.Worker), c.Headers.Value(":path")
	if !a.mute {
		c.Respond(a.answer)
	}
	return true
}

// says makes the hosts of a cluster the answer: each an address, and behind a
// blank what Envoy says of its health.
func (a *admin) says(clusters ...string) { a.answer = ok200(clusters...) }

func ok200(clusters ...string) hostsim.HTTPResponse {
	return hostsim.HTTPResponse{
		Headers: hostsim.Headers{{":status", "200"}, {"content-type", "application/json"}},
		Body:    []byte(`{"cluster_statuses":[` + strings.Join(clusters, ",") + `]}`),
	}
}

func clusterOf(name string, hosts ...string) string {
	var list []string
	for _, h := range hosts {
		address, health, _ := strings.Cut(h, " ")
		a := netip.MustParseAddrPort(address)
		flag := ""
		if strings.HasPrefix(health, "failed") {
			flag, health = `,"`+health+`":true`, ""
		}
		if health == "" {
			health = "HEALTHY"
		}
		list = append(list, fmt.Sprintf(`{"address":{"socket_address":{"address":%q,"port_value":%d}},"health_status":{"eds_health_status":%q%s}}`,
			a.Addr(), a.Port(), health, flag))
	}
	if list == nil {
		return fmt.Sprintf(`{"name":%q}`, name)
	}
	return fmt.Sprintf(`{"name":%q,"host_statuses":[%s]}`, name, strings.Join(list, ","))
}

// vllm says that these are the hosts of the pool's cluster. Another one is there
// too.
func (a *admin) vllm(hosts ...string) {
	a.says(clusterOf("envoy_admin", "127.0.0.1:9901"), clusterOf("vllm", hosts...))
}

const (
	hostA = "10.0.0.1:8000"
	hostB = "10.0.0.2:8000"
	hostC = "[fd00::3]:8000"

	discovered = `"pools":[{"name":"default","cluster":"vllm"}],"discovery":{"admin_cluster":"envoy_admin"}`
	// interval is the default one; a question is answered in the moment it is asked.
	interval = 2 * time.Second
)

// startDiscovery runs the module beside an admin interface that lists the hosts.
func startDiscovery(t testing.TB, workers int, config string, hosts ...string) (*gateway, *admin) {
	t.Helper()
	a := &admin{}
	a.vllm(hosts...)
	g := startWith(t, hosttest.Options{Workers: workers, AllowTraps: true, Adjust: func(c *hostsim.Config) {
		c.LogLevel, c.HTTPCall = hostsim.LogInfo, a.call
	}}, config)
	return g, a
}

// members are the default pool's replicas with their states, but for the removed.
func (g *gateway) members() string {
	g.t.Helper()
	var list []string
	for _, c := range g.record("default").List {
		if c.State != policy.Removed {
			list = append(list, c.Address+" "+c.State.String())
		}
	}
	return strings.Join(list, ", ")
}

func (g *gateway) mustHaveMembers(want, when string) {
	g.t.Helper()
	if got := g.members(); got != want {
		g.t.Errorf("%s: members %q, want %q", when, got, want)
	}
}

// The first question goes out at start. Until it is answered the gateway decides.
func TestDiscoveryBeginsAtStart(t *testing.T) {
	g, a := startDiscovery(t, 2, discovered, hostA, hostB)
	if want := []int{hostsim.Canary, hostsim.MainThread, 0, 1}; !slices.Equal(a.asked, want) {
		t.Errorf("asked by %v, want %v", a.asked, want)
	}
	if r := g.turn("s"); r.reason != "no_replica" || r.target != "" || r.Status != 200 {
		t.Errorf("before the answer: %s, target %q, status %d", r.reason, r.target, r.Status)
	}
	g.Advance(0)
	g.mustHaveMembers(hostA+" active, "+hostB+" active", "at once")
	if r := g.turn("s"); r.reason != "placed" {
		t.Errorf("then: %s", r.reason)
	}
	if want := "/clusters?format=json&filter=%5E%28%5CQvllm%5CE%29%24"; a.path != want {
		t.Errorf("asked for %s, want %s", a.path, want)
	}
}

func TestDiscoveryFindsLosesAndRefinds(t *testing.T) {
	g, a := startDiscovery(t, 3, discovered, hostA, hostB)
	g.Advance(0)
	homes := map[string]string{}
	for i := range 8 {
		id := fmt.Sprint("s", i)
		homes[id] = g.turn(id).replica
	}
	mustStay := func(when string, moved string) {
		t.Helper()
		for id, home := range homes {
			r := g.turn(id)
			if home == moved {
				if r.reason != "failover_removed" {
					t.Errorf("%s: session of the lost host: %s", when, r.reason)
				}
				homes[id] = r.replica
			} else if r.replica != home || r.reason != "pinned" {
				t.Errorf("%s: session of %s: %s on %s", when, home, r.reason, r.replica)
			}
		}
	}
	a.vllm(hostC, hostB, hostA)
	g.Advance(interval)
	g.mustHaveMembers(hostA+" active, "+hostB+" active, "+hostC+" active", "found")
	mustStay("found", "")
	if r := g.turn("new"); r.replica != hostC {
		t.Errorf("new session on %s", r.replica)
	}
	g.release("new")

	a.vllm(hostC, hostA)
	g.Advance(interval + tick) // a worker learns of it at its next tick at the latest
	mustStay("lost", hostB)
	mustStay("after", "")
	before := g.record("default").NextID

	g.Advance(10 * time.Second)
	a.vllm(hostA, hostB, hostC)
	g.Advance(interval + tick)
	if r := g.record("default"); r.NextID != before+1 {
		t.Errorf("the host is back after 12 s and is no other replica: next id %d, before %d", r.NextID, before)
	}
	mustStay("refound", "")
	if r := g.turn("newer"); r.replica != hostB {
		t.Errorf("new session on %s", r.replica)
	}
}

// vllm-project/aibrix#2421: a replica leaves discovery for one round and returns
// while requests run on it. Its load is what it was.
func TestAHostThatIsMissingOnceKeepsItsLoad(t *testing.T) {
	g, a := startDiscovery(t, 2, discovered, hostA)
	g.Advance(time.Minute) // far from the beginning of the clock
	var running []*hostsim.Stream
	for i := range 5 {
		running = append(running, g.begin(i%2, fmt.Sprint("s", i)))
	}
	a.vllm(hostB)
	g.Advance(interval)
	g.mustHaveMembers(hostB+" active", "missing once")
	a.vllm(hostA, hostB)
	g.Advance(interval + tick)
	if got := g.gauge("inflight", hostA); got != 5 || g.open()[hostA] != 5 || g.running()[hostA] != 5 {
		t.Errorf("%d requests by the gauge, %d by the workers, %d sessions; want 5 each", got, g.running()[hostA], g.open()[hostA])
	}
	for i := range 5 {
		if r := g.turn(fmt.Sprint("s", i)); r.replica != hostA || r.reason != "pinned" {
			t.Errorf("session s%d: %s on %s", i, r.reason, r.replica)
		}
	}
	for _, s := range running {
		g.end(s, hostsim.EndNormal)
	}
	g.Advance(2 * tick)
	if got := g.gauge("inflight", hostA); got != 0 {
		t.Errorf("%d requests are left", got)
	}
	// Nor is one that is idle another one afterwards: its health is what it was.
	for i := range 5 {
		g.release(fmt.Sprint("s", i))
	}
	before := g.record("default").NextID
	a.vllm(hostB)
	g.Advance(interval + tick)
	a.vllm(hostA, hostB)
	g.Advance(interval)
	if after := g.record("default").NextID; after != before {
		t.Errorf("next id %d, before %d", after, before)
	}
}

// What the gateway says of a host's health is respected; when all are bad, all
// are used.
func TestDiscoveredStates(t *testing.T) {
	g, a := startDiscovery(t, 1, discovered, hostA, hostB)
	g.Advance(0)
	home := g.turn("s").replica
	other := map[string]string{hostA: hostB, hostB: hostA}[home]
	set := func(mine, others string) {
		a.vllm(home+" "+mine, other+" "+others)
		g.Advance(interval)
	}
	set("DRAINING", "HEALTHY")
	if r := g.turn("s"); r.replica != home || r.reason != "pinned" {
		t.Errorf("draining: %s on %s", r.reason, r.replica)
	}
	for i := range 4 {
		if r := g.turn(fmt.Sprint("n", i)); r.replica != other {
			t.Errorf("a new session on the draining host")
		}
	}
	set("failed_active_health_check", "failed_outlier_check")
	if r := g.turn("s"); r.replica != home || r.reason != "pinned" {
		t.Errorf("all unhealthy: %s on %s", r.reason, r.replica)
	}
	set("failed_outlier_check", "HEALTHY")
	if r := g.turn("s"); r.replica != other || r.reason != "failover_unhealthy" {
		t.Errorf("ejected: %s on %s", r.reason, r.replica)
	}
	set("HEALTHY", "HEALTHY")
	if r := g.turn("s"); r.replica != other || r.reason != "pinned" {
		t.Errorf("well again: %s on %s", r.reason, r.replica)
	}
}

func TestConfiguredReplicasBesideDiscovery(t *testing.T) {
	g, a := startDiscovery(t, 1, `"replicas":[{"address":"10.0.0.1:8000","weight":3},{"address":"10.0.0.2:8000","state":"draining"},"10.0.0.9:1"],`+
		`"discovery":{"admin_cluster":"envoy_admin"}`, hostA, hostB, hostC)
	g.Advance(0)
	g.mustHaveMembers(hostA+" active, "+hostB+" draining, "+hostC+" active", "at first")
	for i := range 8 {
		g.turn(fmt.Sprint("s", i))
	}
	g.mustOpen(6, 0, 2)
	a.vllm(hostA+" DRAINING", hostB+" UNHEALTHY", hostC)
	g.Advance(interval)
	g.mustHaveMembers(hostA+" draining, "+hostB+" unhealthy, "+hostC+" active", "the worse state counts")
}

// One worker asks, and another when that one is gone: here the main thread's
// machine, which never comes back.
func TestOneWorkerAsks(t *testing.T) {
	g, a := startDiscovery(t, 3, discovered, hostA)
	g.Advance(tick)
	for i := range 3 {
		g.on(i, turnOf(fmt.Sprint("s", i)))
	}
	asked := func(d time.Duration) []int {
		a.asked = nil
		g.Advance(d)
		return a.asked
	}
	if got, want := asked(10*time.Second), []int{-1, -1, -1, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("asked by %v, want %v", got, want)
	}
	g.crash(g.Main(), func() { g.Advance(tick) })
	g.Advance(5 * time.Second)
	a.vllm(hostA, hostB)
	if got := asked(10 * time.Second); len(got) != 5 || got[0] < 0 || slices.Min(got) != slices.Max(got) {
		t.Errorf("after the crash asked by %v", got)
	}
	g.mustHaveMembers(hostA+" active, "+hostB+" active", "after the crash")
}

// One question for all pools, whose names may hold what means something in a
// pattern.
func TestDiscoveryOfSeveralPools(t *testing.T) {
	const istio = "outbound|8000||vllm.default"
	g, a := startDiscovery(t, 1, `"pools":[{"name":"a","cluster":"a+b"},{"name":"b","cluster":"`+istio+`"}],"discovery":{"admin_cluster":"envoy_admin","interval":"1s"}`)
	a.says(clusterOf(istio, hostB), clusterOf("a+b", hostA), clusterOf("envoy_admin", "127.0.0.1:9901"))
	asked := len(a.asked)
	g.Advance(tick)
	if len(a.asked) != asked+1 {
		t.Errorf("asked %d times", len(a.asked)-asked)
	}
	if want := "/clusters?format=json&filter=%5E%28%5CQa%2Bb%5CE%7C%5CQoutbound%7C8000%7C%7Cvllm%2Edefault%5CE%29%24"; a.path != want {
		t.Errorf("path %s\nwant %s", a.path, want)
	}
	for cluster, want := range map[string]string{"a+b": hostA, istio: hostB} {
		r := turnOf("s")
		r.Cluster = cluster
		if got := g.do(r).replica; got != want {
			t.Errorf("cluster %s: %q, want %q", cluster, got, want)
		}
	}
	// A pool without a cluster takes the only one there is besides.
	g, a = startDiscovery(t, 1, `"discovery":{"admin_cluster":"envoy_admin"}`, hostA)
	g.Advance(0)
	g.mustHaveMembers(hostA+" active", "one cluster")
	a.says(clusterOf("vllm", hostB), clusterOf("another", hostC))
	g.Advance(interval)
	g.mustHaveMembers(hostA+" active", "two clusters")
	if w := g.Messages(hostsim.LogWarn); len(w) != 1 || !strings.Contains(w[0], errManyClusters.Error()) {
		t.Errorf("warnings %q", w)
	}
}

// From configured replicas to discovery and back: what is there holds until the
// gateway has answered, and no session moves that need not.
func TestFromConfiguredReplicasToDiscovery(t *testing.T) {
	g, a := startDiscovery(t, 2, `"replicas":["10.0.0.1:8000","10.0.0.2:8000"]`, hostA, hostB, hostC)
	homes := map[string]string{}
	for i := range 4 {
		id := fmt.Sprint("s", i)
		homes[id] = g.turn(id).replica
	}
	stay := func(when string) {
		t.Helper()
		for id, home := range homes {
			if r := g.turn(id); r.replica != home || r.reason != "pinned" {
				t.Errorf("%s: %s on %s", when, r.reason, r.replica)
			}
		}
	}
	if err := g.reconfigure(discovered); err != nil {
		t.Fatal(err)
	}
	g.mustHaveMembers(hostA+" active, "+hostB+" active", "before the answer")
	stay("before the answer")
	g.Advance(4 * tick)
	g.mustHaveMembers(hostA+" active, "+hostB+" active, "+hostC+" active", "after the answer")
	stay("after the answer")
	asked := len(a.asked)
	if err := g.reconfigure(`"replicas":["10.0.0.1:8000","10.0.0.2:8000"]`); err != nil {
		t.Fatal(err)
	}
	g.mustHaveMembers(hostA+" active, "+hostB+" active", "configured again")
	g.Advance(20 * tick) // the old configuration drains
	g.mustHaveMembers(hostA+" active, "+hostB+" active", "configured again")
	stay("configured again")
	if len(a.asked) != asked {
		t.Errorf("a configuration that is superseded asked %d times", len(a.asked)-asked)
	}
}
