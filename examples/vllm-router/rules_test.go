//go:build peer

package vllmrouter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// pair is both routers, each before the same replicas, with nothing open.
type pair struct {
	t        *testing.T
	replicas []*replica
	all      []string
	peer     *peer
	ours     *pinwheel
	markers  int
}

// startPair starts both with the first of n replicas as members. extra goes into Pinwheel's configuration, a policy in it
// to both, env to vllm-router.
func startPair(t *testing.T, n, members int, extra map[string]any, env ...string) *pair {
	replicas := openReplicas(t, n)
	all := addresses(replicas)
	policy := "sticky_least_loaded"
	config := map[string]any{"debug_headers": true}
	for k, v := range extra {
		config[k] = v
		if k == "policy" {
			policy = v.(string)
		}
	}
	return &pair{t: t, replicas: replicas, all: all, peer: startPeer(t, policy, replicas, all[:members], env...),
		ours: startPinwheel(t, replicas, all[:members], config)}
}

// members is a set of the replicas at those positions, all healthy or none.
func (p *pair) members(healthy bool, positions ...int) map[string]bool {
	m := map[string]bool{}
	for _, i := range positions {
		m[p.all[i]] = healthy
	}
	return m
}

func (p *pair) set(members map[string]bool) {
	p.peer.set(members)
	p.ours.set(members)
}

// on sends a request to one of the two, which must answer.
func (p *pair) on(r *router, method, path, body string, headers ...[2]string) answer {
	p.t.Helper()
	a, err := r.do(method, path, body, headers...)
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

// turn is a turn of a session that must be served.
func (p *pair) turn(r *router, id string) answer {
	p.t.Helper()
	a := p.on(r, "POST", chat, prompt, [2]string{"X-Session-Id", id})
	if a.status != 200 || a.replica == "" {
		p.t.Fatalf("a turn of %s: %+v", id, a)
	}
	return a
}

// theyKnow reports whether vllm-router has opened a session of that id: whether its log says so before it says that a
// later one was opened.
func (p *pair) theyKnow(id string) bool {
	p.t.Helper()
	p.markers++
	marker := fmt.Sprint("marker", p.markers)
	p.turn(&p.peer.router, marker)
	eventually(p.t, "vllm-router logs a placement", func() string {
		if _, ok := p.peer.log.of(marker); !ok {
			return "no line yet"
		}
		return ""
	})
	_, known := p.peer.log.of(id)
	return known
}

// weKnow reports whether Pinwheel has a session of that id. If it had none, it has one now.
func (p *pair) weKnow(id string) bool {
	p.t.Helper()
	return p.turn(&p.ours.router, id).reason == "pinned"
}

// rules are the differences that README.md lists, each shown on both sides.
var rules = []struct {
	name string
	show func(*testing.T)
}{
	{"ties", ruleTies},
	{"joining", ruleJoining},
	{"generation", ruleGeneration},
	{"nobody healthy", ruleNobodyHealthy},
	{"coming back", ruleComingBack},
	{"session headers", ruleSessionHeaders},
	{"repeated header", ruleRepeatedHeader},
	{"underscores", ruleUnderscores},
	{"long ids", ruleLongIDs},
	{"keyless", ruleKeyless},
	{"all paths", ruleAllPaths},
	{"release", ruleRelease},
	{"ids in bodies", ruleBodies},
	{"idle timeout", ruleIdleTimeout},
}

// What README.md says of differences is what the real router and Pinwheel do.
func TestRules(t *testing.T) {
	var shown []string
	for _, r := range rules {
		shown = append(shown, r.name)
		t.Run(strings.ReplaceAll(r.name, " ", "_"), r.show)
	}
	var told []string
	for _, row := range tableUnder(t, "## Where they differ") {
		told = append(told, row[0])
	}
	if !slices.Equal(told, shown) {
		t.Errorf("README.md tells the rules %q, tests show %q", told, shown)
	}
}

// One session after the other, each finished before the next: with the same id they all meet on one replica there, and
// take turns here.
func ruleTies(t *testing.T) {
	p := startPair(t, 3, 3, nil)
	theirs, ours := map[string]int{}, map[string]int{}
	for range 12 {
		for served, r := range map[*map[string]int]*router{&theirs: &p.peer.router, &ours: &p.ours.router} {
			(*served)[p.turn(r, "again").replica]++
			if err := r.finish("again"); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.oneAgainstAll(t, theirs, ours)
}

// oneAgainstAll expects that vllm-router's requests all met on one replica, and that
// of Pinwheel's each has four.
func (p *pair) oneAgainstAll(t *testing.T, theirs, ours map[string]int) {
	t.Helper()
	if len(theirs) != 1 {
		t.Errorf("vllm-router: %v, want all on one replica", theirs)
	}
	for _, a := range p.all {
		if ours[a] != 4 {
			t.Errorf("Pinwheel: %v, want 4 on each replica", ours)
			break
		}
	}
}

// Four sessions on each of three replicas; a fourth replica comes, and four new sessions.
func ruleJoining(t *testing.T) {
	p := startPair(t, 4, 3, nil)
	theirs, ours := 0, 0
	for i := range 16 {
		if i == 12 {
			p.set(p.members(true, 0, 1, 2, 3))
		}
		id := fmt.Sprint("s", i)
		if p.turn(&p.peer.router, id).replica == p.all[3] {
			theirs++
		}
		if p.turn(&p.ours.router, id).replica == p.all[3] {
			ours++
		}
	}
	if theirs != 4 || ours != 2 {
		t.Errorf("of four sessions the newcomer gets %d in vllm-router, want 4, and %d in Pinwheel, want 2", theirs, ours)
	}
}

func ruleGeneration(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	theirHome, ourHome := p.turn(&p.peer.router, "s").replica, p.turn(&p.ours.router, "s").replica
	for _, side := range []struct {
		r    *router
		set  func(map[string]bool)
		home string
	}{{&p.peer.router, p.peer.set, theirHome}, {&p.ours.router, p.ours.set, ourHome}} {
		rest := p.members(true, 0, 1)
		delete(rest, side.home)
		side.set(rest)
		side.set(p.members(true, 0, 1))
	}
	if a := p.turn(&p.peer.router, "s"); a.replica != theirHome {
		t.Errorf("vllm-router moves the session to %s from %s", a.replica, theirHome)
	}
	if a := p.turn(&p.ours.router, "s"); a.reason != "failover_removed" {
		t.Errorf("Pinwheel: %+v, want failover_removed", a)
	}
}

func ruleNobodyHealthy(t *testing.T) {
	p := startPair(t, 2, 2, nil)
	p.set(p.members(false, 0, 1))
	if a := p.on(&p.peer.router, "POST", chat, prompt, [2]string{"X-Session-Id", "s"}); a.status != 503 {
		t.Errorf("vllm-router: %+v, want 503", a)
	}
	if a := p.on(&p.ours.router, "POST", chat, prompt, [2]string{"X-Session-Id", "s"}); a.status != 200 {
		t.Errorf("Pinwheel: %+v, want 200", a)
	}
}

// 300 sessions by consistent_hash on four replicas, of which one fails and comes back. Both spread its sessions over all
// others; then they return there, and stay here unless there is no bound.
func ruleComingBack(t *testing.T) {
	p := startPair(t, 4, 4, map[string]any{"policy": "consistent_hash"})
	unbounded := startPinwheel(t, p.replicas, p.all, map[string]any{"policy": "consistent_hash", "consistent_hash": map[string]any{"load_factor": 0}})
	for _, side := range []struct {
		name    string
		r       *router
		set     func(map[string]bool)
		returns bool
	}{
		{"vllm-router", &p.peer.router, p.peer.set, true},
		{"Pinwheel", &p.ours.router, p.ours.set, false},
		{"Pinwheel without a bound", &unbounded.router, unbounded.set, true},
	} {
		home := p.all[3]
		moved := map[string]string{}
		for i := range 300 { // of fewer, a ring that is uneven as rings are may give none to a replica
			if id := fmt.Sprint("s", i); p.turn(side.r, id).replica == home {
				moved[id] = ""
			}
		}
		ill := p.members(true, 0, 1, 2, 3)
		ill[home] = false
		side.set(ill)
		to := map[string]int{}
		for id := range moved {
			moved[id] = p.turn(side.r, id).replica
			to[moved[id]]++
		}
		if len(to) != 3 || to[home] > 0 {
			t.Fatalf("%s: %d sessions of %s go to %v, want three replicas", side.name, len(moved), home, to)
		}
		side.set(p.members(true, 0, 1, 2, 3))
		for id, at := range moved {
			want := at
			if side.returns {
				want = home
			}
			if got := p.turn(side.r, id).replica; got != want {
				t.Errorf("%s: %s was on %s, then on %s, now on %s, want %s", side.name, id, home, at, got, want)
			}
		}
	}
}
