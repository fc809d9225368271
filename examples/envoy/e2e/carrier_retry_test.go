package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// kill closes the replica and waits until Envoy has seen its connections go: what
// is sent over one that goes at that moment may be lost under any carrier. The
// function that it returns opens the replica again, once; the test's end does too.
func (g *gateway) kill(t *testing.T, r *envoytest.Replica) (reopen func()) {
	t.Helper()
	r.Close()
	reopen = sync.OnceFunc(func() {
		if err := r.Reopen(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(reopen)
	host := fmt.Sprintf(`cluster_statuses.#(name=="vllm").host_statuses.#(address.socket_address.port_value==%s)`, r.Addr[strings.LastIndex(r.Addr, ":")+1:])
	until(t, "no connection to the dead replica", func() (bool, string) {
		page, err := g.envoy.Admin.Get(t.Context(), "/clusters?format=json")
		if err != nil {
			t.Fatal(err)
		}
		left := gjson.Get(page, host+`.stats.#(name=="cx_active").value`).Str // zero is left out
		return left == "" || left == "0", left
	})
	return reopen
}

// try sends a turn that may fail.
func (g *gateway) try(t *testing.T, id string) reply {
	t.Helper()
	g.opened(id)
	r, err := g.client.send(t.Context(), http.MethodPost, chatPath, strings.NewReader("{}"), "X-Session-ID", id)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Header.Values(targetHeader); v != nil {
		t.Errorf("the client was told %s: %q", targetHeader, v)
	}
	return r
}

const (
	statRetries        = "cluster.vllm.upstream_rq_retry"
	statConnectFailure = "cluster.vllm.upstream_cx_connect_fail"
)

// Where the gateway's retry goes when the session's replica takes no
// connections, the plugin's own health being off: to the session's own spare, to
// anybody, or to the same address again.
func TestCarriersRetry(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(t *testing.T, k kind, g *gateway) {
		g.update(t, func(c map[string]any) { c["health"] = map[string]any{"failures": 0} })
		defer g.update(t, func(map[string]any) {})
		homes := g.turns(t, newIDs(24), "placed")
		dead := g.replicas[0]
		reopen := g.kill(t, dead)
		before := g.stats(t, `^cluster\.vllm\.upstream_`)

		const turns = 5
		var wanderers int
		for id, home := range homes {
			if home != dead.Addr {
				continue
			}
			served := map[string]bool{}
			for range turns {
				r := g.try(t, id)
				served[r.Served] = true
				switch {
				case r.Reason != "pinned":
					t.Errorf("reason %q, want pinned", r.Reason)
				case k == originalDst && (r.Status != 503 || r.Served != "" || r.Chosen != home):
					t.Errorf("status %d, served by %q, named %q; want Envoy's 503 and %s", r.Status, r.Served, r.Chosen, home)
				case k != originalDst && (r.Status != 200 || r.Served == home || r.Chosen != r.Served):
					t.Errorf("status %d, served by %q, x-pinwheel-replica %q; want 200 from another than %s", r.Status, r.Served, r.Chosen, home)
				}
			}
			if len(served) > 1 {
				wanderers++
			}
		}
		// Of eight sessions with five turns each at random, one that sees a single
		// host is likely, all of them is a chance of 1 in 10^9.
		if (wanderers > 0) != (k == statefulSession) {
			t.Errorf("%d of 8 sessions were served by more than one host", wanderers)
		}
		after := g.stats(t, `^cluster\.vllm\.upstream_`)
		retries, failures := after[statRetries]-before[statRetries], after[statConnectFailure]-before[statConnectFailure]
		want := map[kind]uint64{overrideHost: 8 * turns, statefulSession: 8 * turns, originalDst: 2 * 8 * turns}[k]
		if retries != 8*turns || failures != want {
			t.Errorf("%d turns: %d retries, %d failed connections, want %d and %d", 8*turns, retries, failures, 8*turns, want)
		}
		reopen()
		g.stay(t, homes) // the pins waited
	})
}

// traefik/traefik#7886, the settings reported: however often the gateway tries again,
// and with one try to find another host, a pool of two serves the sessions of the one
// that is dead.
func TestRetriesOfAPoolOfTwo(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		living, dead := g.replicas[0], g.replicas[1]
		for _, n := range []int{1, 3} {
			retries := inPlace("num_retries: 2\n", fmt.Sprintf("num_retries: %d\n                    host_selection_retry_max_attempts: 1\n", n))
			undo := g.alter(t, retries, func(c map[string]any) {
				c["replicas"], c["health"] = []string{living.Addr, dead.Addr}, map[string]any{"failures": 0}
			})
			homes := g.turns(t, newIDs(8), "placed")
			reopen := g.kill(t, dead)
			for id := range homes {
				for range 3 {
					if r := g.try(t, id); r.Status != 200 || r.Served != living.Addr || r.Reason != "pinned" {
						t.Errorf("%d retries: %s on %s: status %d, %q, served by %s", n, id, homes[id], r.Status, r.Reason, r.Served)
					}
				}
			}
			reopen()
			g.stay(t, homes) // the pins waited
			g.release(t, keys(homes)...)
			undo()
		}
	})
}

// ai-dynamo/dynamo#10920: a request that was sent again had lost its session. Envoy
// runs the filter anew for a request that it redirects itself, and sends the same
// headers again when it retries: it is the same session on the same replica, which
// counts once, and nothing is left in flight.
func TestRequestsThatAreSentAgainKeepTheirSession(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		const policy = "                  retry_policy:\n"
		redirects := inPlace(policy, "                  internal_redirect_policy: {max_internal_redirects: 2}\n"+policy)
		defer g.alter(t, redirects, func(map[string]any) {})()
		id := newID()
		var home string
		const turns = 5
		for i := range turns {
			g.opened(id)
			r, err := g.client.send(t.Context(), http.MethodGet, chatPath, nil, "X-Session-ID", id, envoytest.DoHeader, "redirect=/elsewhere")
			if err != nil {
				t.Fatal(err)
			}
			if g.expect(t, r, "pinned"); i == 0 { // placed before the redirect
				home = r.Served
			}
			if r.Served != home {
				t.Errorf("turn %d went to %s, the session lives on %s", i, r.Served, home)
			}
		}
		paths := map[string]int{}
		for _, r := range g.replicas {
			for _, q := range r.Requests() {
				if q.Session == id && r.Addr == home {
					paths[q.Path]++
				} else if q.Session == id || q.Path == "/elsewhere" {
					t.Errorf("%s got %s of session %q", r.Addr, q.Path, q.Session)
				}
			}
		}
		if paths[chatPath] != turns || paths["/elsewhere"] != turns {
			t.Errorf("requests of the session on its replica: %v", paths)
		}
		g.waitOpenTotal(t, 1)
		g.waitInflight(t, 0)

		// A retry goes to a spare, with the id.
		var dead *envoytest.Replica
		for _, r := range g.replicas {
			if r.Forget(); r.Addr == home {
				dead = r
			}
		}
		reopen := g.kill(t, dead)
		r := g.try(t, id)
		for _, spare := range g.replicas {
			if got := spare.Requests(); spare.Addr == r.Served && (len(got) != 1 || got[0].Session != id) {
				t.Errorf("the spare got %+v", got)
			}
		}
		if r.Status != 200 || r.Served == home || r.Header.Get("x-envoy-attempt-count") != "2" {
			t.Errorf("with its replica dead: status %d from %q, attempt %s", r.Status, r.Served, r.Header.Get("x-envoy-attempt-count"))
		}
		reopen()
		g.waitOpenTotal(t, 1)
	})
}

// What the predicate previous_hosts is for: without it the load balancer draws
// the dead replica for retries too.
func TestStatefulSessionRetriesAnywhere(t *testing.T) {
	t.Parallel()
	each(t, statefulSession, func(t *testing.T, g *gateway) {
		defer g.alter(t, leaveOut("retry_host_predicate:"), func(c map[string]any) { c["health"] = map[string]any{"failures": 0} })()
		homes := g.turns(t, newIDs(3), "placed")
		dead := g.replicas[0]
		defer g.kill(t, dead)()
		before := g.stats(t, `^cluster\.vllm\.upstream_`)[statConnectFailure]
		const turns = 60 // none of whose retries draws one of three: a chance of 1 in 10^10
		for id, home := range homes {
			for i := 0; i < turns && home == dead.Addr; i++ {
				g.try(t, id)
			}
		}
		if n := g.stats(t, `^cluster\.vllm\.upstream_`)[statConnectFailure] - before; n <= turns {
			t.Errorf("%d failed connections in %d turns, want some in retries too", n, turns)
		}
	})
}

// With the plugin's health on, as by default, the sessions of a dead replica
// move after three failures; what the client sees until then differs.
func TestCarriersLeaveADeadReplica(t *testing.T) {
	t.Parallel()
	eachCarrier(t, func(t *testing.T, k kind, g *gateway) {
		g.update(t, func(c map[string]any) {
			c["health"] = map[string]any{"cooldown": "2s", "max_cooldown": "2s"}
		})
		defer g.update(t, func(map[string]any) {})
		homes := g.turns(t, newIDs(24), "placed")
		dead := g.replicas[0]
		reopen := g.kill(t, dead)
		failed := 0
		for id, home := range homes {
			if home != dead.Addr {
				continue
			}
			until(t, "the session to move", func() (bool, string) {
				r := g.try(t, id)
				if r.Status != 200 {
					failed++
				}
				homes[id] = r.Served
				// The first host that was asked answered: the pin is on another replica now.
				// original-dst.yaml does not count attempts: there, no other host is asked.
				attempts := r.Header.Get("x-envoy-attempt-count")
				return r.Status == 200 && (attempts == "1" || k == originalDst && attempts == ""), fmt.Sprint(r.Status, r.Reason, attempts)
			})
		}
		t.Logf("%d of the clients' requests failed", failed)
		// Three failures on record; the other worker meets one more before it learns.
		if k != originalDst && failed != 0 || k == originalDst && (failed < 3 || failed > 4) {
			t.Errorf("%d of the clients' requests failed", failed)
		}
		g.stay(t, homes)
		if k == originalDst { // nobody else can answer for a trial
			until(t, "a new session to try the dead replica", func() (bool, string) {
				r := g.try(t, newID())
				return r.Status == 503 && r.Reason == "placed" && r.Chosen == dead.Addr, fmt.Sprint(r.Status, r.Reason, r.Chosen)
			})
		}
		reopen()
		until(t, "new sessions on the replica that is back", func() (bool, string) {
			r := g.try(t, newID())
			return r.Served == dead.Addr, r.Served
		})
		g.stay(t, homes)
	})
}
