package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// traefik/traefik#7886: retries went back to the sticky, dead replica.
// A replica refuses connections. Spares serve its sessions until the plugin has
// heard of it often enough; then these live elsewhere and nobody else moves, none
// returns when the replica is back, and new sessions come to it.
func TestADeadReplicasSessionsMove(t *testing.T) {
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
