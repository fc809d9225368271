package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// replicas writes a "replicas" list of n addresses 10.0.0.1:8000 and on.
func replicas(n int) string {
	var list []string
	for _, m := range addresses(n) {
		list = append(list, `"`+m.Address+`"`)
	}
	return `"replicas":[` + strings.Join(list, ",") + `]`
}

// vllm-project/vime#98: 480 requests without a session header were one key and
// went to one replica of eight.
func TestKeylessTrafficSpreadsEvenly(t *testing.T) {
	for _, name := range []string{"sticky_least_loaded", "consistent_hash", "cache_aware"} {
		for _, workers := range []int{2, 3} {
			for _, header := range [][][2]string{nil, {{"x-session-id", ""}}, {{"x-session-id", "  "}}} {
				g := startGateway(t, workers, replicas(8)+named(name))
				got := map[string]int{}
				for range 480 {
					r := g.keyless(header...)
					if r.reason != "keyless" {
						t.Fatalf("%s: reason %s", name, r.reason)
					}
					got[r.replica]++
				}
				for _, m := range addresses(8) {
					if got[m.Address] != 60 {
						t.Errorf("%s, %d workers, header %q: %s got %d of 480 requests, want 60", name, workers, header, m.Address, got[m.Address])
					}
				}
				g.mustOpen(0, 0, 0, 0, 0, 0, 0, 0)
				if g.Advance(tick); g.decided(name, policy.Keyless) != 480 {
					t.Errorf("%s: %d keyless requests counted, want 480", name, g.decided(name, policy.Keyless))
				}
			}
		}
	}
}

// vllm-project/vime#98, the variant: half of the requests have a session.
func TestKeylessTrafficDisturbsNoSession(t *testing.T) {
	for _, name := range []string{"sticky_least_loaded", "consistent_hash"} {
		g := startGateway(t, 2, replicas(8)+named(name))
		homes, keyless := map[string]string{}, map[string]int{}
		for i := range 80 {
			homes[fmt.Sprint("s", i)] = g.turn(fmt.Sprint("s", i)).replica
		}
		for i := range 240 {
			id := fmt.Sprint("s", i%80)
			if r := g.on(i%2, turnOf(id)); r.reason != "pinned" || r.replica != homes[id] {
				t.Errorf("%s: %s: %s on %s, want pinned on %s", name, id, r.reason, r.replica, homes[id])
			}
			keyless[g.on(i%2, hosttest.Request{Path: "/v1/models"}).replica]++
		}
		// The least loaded: of equal ones each, of others those with the fewest sessions.
		fewest, at := 80, 0
		for _, n := range g.open() {
			if n < fewest {
				fewest, at = n, 0
			}
			if n == fewest {
				at++
			}
		}
		for address, n := range g.open() {
			if got, want := keyless[address], map[bool]int{true: 240 / at}[n == fewest]; got < want || got > want+at {
				t.Errorf("%s: %s with %d sessions got %d of 240 keyless requests, want %d", name, address, n, got, want)
			}
		}
		if n := g.sessions("default"); n != 80 {
			t.Errorf("%s: %d sessions, want 80", name, n)
		}
	}
}

// vllm-project/vime#98: nobody noticed that the header was missing. One line a
// minute for each worker says so.
func TestKeylessRequestsAreWarnedOf(t *testing.T) {
	g := startGateway(t, 2, threeReplicas)
	warnings := func() (n int) {
		for _, m := range g.Messages(hostsim.LogWarn) {
			if strings.Contains(m, "requests without a session id") && strings.Contains(m, "x-session-id") {
				n++
			}
		}
		return n
	}
	g.turn("s")
	g.Advance(2 * tick)
	if n := warnings(); n != 0 {
		t.Errorf("%d warnings of a request with a session id", n)
	}
	for range 30 {
		for w := range 2 {
			g.on(w, hosttest.Request{Path: "/v1/models"})
		}
		g.Advance(tick)
	}
	if n := warnings(); n != 2 {
		t.Errorf("%d warnings in half a minute of two workers, want one each", n)
	}
	g.Advance(time.Minute)
	if n := warnings(); n != 4 {
		t.Errorf("%d warnings after another minute, want two of each worker", n)
	}
	g.Advance(5 * time.Minute)
	if n := warnings(); n != 4 {
		t.Errorf("%d warnings, and no request since", n)
	}
}
