package e2e

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// traefik/traefik#7886: retries went back to the sticky, dead replica.
// A replica refuses connections. Spares serve its sessions until the plugin has
// heard of it often enough; then these live elsewhere and nobody else moves, none
// returns when the replica is back, and new sessions come to it.
func TestADeadReplicasSessionsMove(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		g.update(t, func(c map[string]any) {
			c["health"] = map[string]any{"cooldown": "300ms", "max_cooldown": "300ms"}
		})
		defer g.update(t, func(map[string]any) {})
		ids := newIDs(12)
		homes := g.turns(t, ids, "placed")
		dead := homes[ids[0]]
		reopen := func() {}
		for _, r := range g.replicas {
			if r.Addr == dead {
				r.Close()
				reopen = sync.OnceFunc(func() {
					if err := r.Reopen(); err != nil {
						t.Error(err)
					}
				})
				defer reopen()
			}
		}
		turn := func(id string) reply {
			r, err := g.client.send(t.Context(), http.MethodPost, chatPath, strings.NewReader("{}"), "X-Session-ID", id)
			if err != nil || r.Status != 200 || r.Served == "" {
				g.complain(t, "turn of %s: status %d, %v; want 200", id, r.Status, err)
			}
			return r
		}
		for _, id := range ids {
			if homes[id] != dead {
				continue
			}
			until(t, "a session of the dead replica to move", func() (bool, string) {
				r := turn(id)
				homes[id] = r.Served
				// Once it is sent there at first, and not by a retry.
				return r.Served != dead && r.Header.Get("x-envoy-attempt-count") == "1", r.Reason + " " + r.Served
			})
		}
		g.stillPinned(t, homes)
		reopen()
		until(t, "new sessions on the replica that is back", func() (bool, string) {
			id := newID()
			g.opened(id)
			r := turn(id)
			return r.Served == dead, r.Reason + " " + r.Served
		})
		for id, addr := range g.turns(t, ids, "pinned") {
			if addr != homes[id] {
				t.Errorf("session %s moved from %s to %s", id, homes[id], addr)
			}
		}
	})
}

// Envoy's circuit breaker opens: no replica has failed, and no session moves.
func TestOverflowMovesNoSession(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		const most = "circuit_breakers.vllm.default.max_requests"
		homes := g.turns(t, newIDs(3), "placed")
		g.setRuntime(t, most, "0")
		defer g.setRuntime(t, most, "")
		for id := range homes {
			for range 4 {
				r, err := g.client.send(t.Context(), http.MethodPost, chatPath, nil, "X-Session-ID", id)
				if err != nil || r.Status != 503 || r.Header.Get("x-envoy-overloaded") == "" || r.Reason != "pinned" {
					t.Errorf("status %d, reason %q, %v; want 503 by overflow, pinned", r.Status, r.Reason, err)
				}
			}
		}
		g.setRuntime(t, most, "")
		g.stillPinned(t, homes)
	})
}

// A replica fails, and of its next requests the bodies are no HTTP, to which Envoy
// answers 400 itself: the failure stays on record.
func TestABrokenRequestIsNoSuccess(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		g.update(t, withAdmin)
		defer g.update(t, func(map[string]any) {})
		id := newID()
		home := g.turn(t, id, "placed").Served
		if r, err := g.client.send(t.Context(), http.MethodPost, chatPath, nil, "X-Session-ID", id, envoytest.DoHeader, "reset=0"); err != nil || r.Status != 503 {
			t.Fatalf("status %d, %v", r.Status, err)
		}
		for range 2 { // by the second one at the latest, both workers know of the failure
			c := g.dial(t)
			if _, err := io.WriteString(c.conn, "POST /v1/x HTTP/1.1\r\nHost: a\r\nX-Session-ID: "+id+"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"); err != nil {
				t.Fatal(err)
			}
			g.waitInflight(t, 1)
			if r := c.send(t, "no chunk\r\n"); r.Status != 400 || r.Chosen != home {
				t.Errorf("status %d, named %q; want 400, %s", r.Status, r.Chosen, home)
			}
			g.waitInflight(t, 0)
		}
		if n := g.standingOf(t, home).Health.Failures; n != 1 {
			t.Errorf("%d failures on record, want 1", n)
		}
		g.turn(t, id, "pinned")
		if n := g.standingOf(t, home).Health.Failures; n != 0 {
			t.Errorf("%d failures on record after a success, want 0", n)
		}
	})
}

// setRuntime sets a value of Envoy's runtime, or takes it back if it is empty.
func (g *gateway) setRuntime(t *testing.T, key, value string) {
	t.Helper()
	res, err := http.Post("http://"+g.envoy.Admin.Addr+"/runtime_modify?"+key+"="+value, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("runtime %s: %s", key, res.Status)
	}
}
