package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

const (
	adminHeader = "x-pinwheel-secret"
	adminSecret = "open sesame"
)

// withAdmin turns the endpoint for operators on.
func withAdmin(c map[string]any) { c["admin"] = map[string]any{"secret": adminSecret} }

// order is an operator's request; its answer must be JSON with that status.
func (g *gateway) order(t *testing.T, method, rest, secret string, status int, answer any) {
	t.Helper()
	r, err := g.client.send(t.Context(), method, "/pinwheel"+rest, nil, adminHeader, secret)
	if err != nil || r.Status != status || r.Served != "" {
		t.Errorf("%s %s: %d %q by %q, %v; want %d from the plugin", method, rest, r.Status, r.Body, r.Served, err, status)
	}
	if err := json.Unmarshal([]byte(r.Body), answer); err != nil {
		t.Errorf("%s %s: %q: %v", method, rest, r.Body, err)
	}
}

type standing = envoytest.Standing

func (g *gateway) standingOf(t *testing.T, address string) standing {
	t.Helper()
	var s envoytest.Status
	g.order(t, http.MethodGet, "/status", adminSecret, 200, &s)
	for _, p := range s.Pools {
		for _, r := range p.Replicas {
			if r.Address == address {
				return r
			}
		}
	}
	t.Errorf("status does not show %s", address)
	return standing{}
}

// A replica is drained under load, is stopped when it is empty, and comes back.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		g.update(t, withAdmin)
		drained := g.replicas[1].Addr
		query := "?replica=" + drained
		defer g.update(t, func(map[string]any) {})
		defer g.order(t, http.MethodPost, "/undrain"+query, adminSecret, 200, &standing{})
		homes := g.turns(t, newIDs(30), "placed")
		stop := g.traffic(t, homes)
		var s standing
		g.order(t, http.MethodPost, "/drain"+query, adminSecret, 200, &s)
		if s.Replica != drained || s.State != "draining" || s.OpenSessions != 10 || !s.Drain || s.Empty {
			t.Errorf("drain answered %+v", s)
		}
		late := g.turns(t, newIDs(20), "placed")
		g.update(t, func(c map[string]any) { // which is applied anew on all workers
			withAdmin(c)
			c["target"] = map[string]any{"spares": 1}
		})
		for id, home := range g.turns(t, newIDs(20), "placed") {
			late[id] = home
		}
		if got := g.spread(late); got[1] != 0 || got[0]+got[2] != 40 {
			t.Errorf("new sessions went %v", got)
		}
		if n, failed := stop(); n < 20 || len(failed) > 0 {
			t.Errorf("%d of %d turns of open sessions failed, the first: %q", len(failed), n, failed[:min(3, len(failed))])
		}

		var leaving []string
		for id, home := range homes {
			if home == drained {
				leaving = append(leaving, id)
			}
		}
		res := g.stream(t, t.Context(), leaving[0], "chunks=3&hold=1")
		if res == nil {
			t.FailNow()
		}
		defer res.Body.Close()
		g.release(t, leaving...)
		until(t, "status to show the one request that is left", func() (bool, string) {
			s := g.standingOf(t, drained)
			return s.OpenSessions == 0 && s.Inflight == 1 && !s.Empty && s.State == "draining", fmt.Sprint(s)
		})
		for _, r := range g.replicas {
			r.Release()
		}
		if body, err := io.ReadAll(res.Body); err != nil || strings.Count(string(body), "data:") != 3 {
			t.Errorf("the last stream: %q, %v", body, err)
		}
		until(t, "the drained replica to be empty", func() (bool, string) {
			s := g.standingOf(t, drained)
			return s.Empty && s.OpenSessions+s.Inflight == 0, fmt.Sprint(s)
		})
		if got := g.spread(g.turns(t, newIDs(10), "placed")); got[1] != 0 {
			t.Errorf("%d new sessions came to the empty replica", got[1])
		}

		g.order(t, http.MethodPost, "/undrain"+query, adminSecret, 200, &s)
		if got := g.spread(g.turns(t, newIDs(12), "placed")); got[1] < 4 || got[1] > 8 {
			t.Errorf("%d of 12 new sessions came to the replica that is back, want 4 to 8", got[1])
		}
	})
}

func TestAdminSecret(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		// Off: a path like any other.
		if r, err := g.client.send(t.Context(), http.MethodGet, "/pinwheel/status", nil); err != nil || r.Served == "" {
			t.Errorf("without admin: %d, served by %q, %v", r.Status, r.Served, err)
		}
		g.update(t, withAdmin)
		defer g.update(t, func(map[string]any) {})
		id := newID()
		g.turn(t, id, "placed")
		for _, secret := range []string{"", "open sesam", "open sesame!", "open sesamE"} {
			for _, rest := range []string{"/status", "/drain?replica=" + g.replicas[0].Addr, "/undrain?replica=" + g.replicas[0].Addr, "/reset", "/x"} {
				var a map[string]any
				g.order(t, http.MethodPost, rest, secret, 401, &a)
				if a["error"] != "missing or wrong "+adminHeader {
					t.Errorf("%s: %v", rest, a)
				}
			}
		}
		g.turn(t, id, "pinned")
		if s := g.standingOf(t, g.replicas[0].Addr); s.State != "active" || s.Drain {
			t.Errorf("an order without the secret was obeyed: %+v", s)
		}
		var a map[string]any
		g.order(t, http.MethodPost, "/drain?replica=127.0.0.1:9", adminSecret, 404, &a)
		if said := fmt.Sprint(a["error"]); !strings.Contains(said, g.replicas[0].Addr) {
			t.Errorf("unknown replica: %s", said)
		}
		g.order(t, http.MethodGet, "/reset", adminSecret, 405, &a)
	})
}

func TestResetUnderLoad(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		g.update(t, withAdmin)
		defer g.update(t, func(map[string]any) {})
		ids := newIDs(30)
		g.turns(t, ids, "placed")
		res := g.stream(t, t.Context(), ids[0], "chunks=3&hold=1")
		if res == nil {
			t.FailNow()
		}
		defer res.Body.Close()
		home := res.Header.Get(envoytest.ServedByHeader)
		g.waitInflight(t, 1)
		var s standing
		g.order(t, http.MethodPost, "/reset", adminSecret, 200, &s)
		if s.EndedSessions != 30 {
			t.Errorf("reset answered %+v", s)
		}
		g.waitOpenTotal(t, 0)
		if s := g.standingOf(t, home); s.Inflight != 1 || s.OpenSessions != 0 {
			t.Errorf("status of the replica with a running request: %+v", s)
		}
		// Each worker has had its tick once no turn is pinned any more.
		until(t, "both workers to know", func() (bool, string) {
			r, err := g.client.send(t.Context(), http.MethodGet, "/v1/models", nil, "X-Session-ID", ids[1])
			g.release(t, ids[1])
			g.client.http.CloseIdleConnections()
			return err == nil && r.Reason == "placed", r.Reason
		})
		for i, n := range g.spread(g.turns(t, newIDs(30), "placed")) {
			if n != 10 {
				t.Errorf("%d of 30 sessions of after the reset are on replica %d", n, i)
			}
		}
		g.waitOpen(t, 10, 10, 10)
		for _, r := range g.replicas {
			r.Release()
		}
		if body, err := io.ReadAll(res.Body); err != nil || strings.Count(string(body), "data:") != 3 {
			t.Errorf("the stream that lived through the reset: %q, %v", body, err)
		}
		g.waitInflight(t, 0)
		g.turns(t, ids, "placed")
		g.waitOpen(t, 20, 20, 20)
	})
}
