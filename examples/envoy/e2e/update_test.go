package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// replace puts a new text of the listener where Envoy finds it: it watches for
// renames, never for writes.
func (g *gateway) replace(t *testing.T, edit func(map[string]any)) {
	t.Helper()
	text, err := g.render(edit)
	if err != nil {
		t.Fatal(err)
	}
	if err := envoytest.Replace(g.resources, text); err != nil {
		t.Fatal(err)
	}
}

const (
	// serialPath is a route that tests add to the listener: it tells which
	// configuration a connection is under.
	serialPath      = "/config-serial"
	updatesAccepted = "listener_manager.lds.update_success"
	updatesRejected = "listener_manager.lds.update_rejected"
)

// update replaces the plugin configuration by the user's with the given edit,
// and waits until both workers have taken it. Connections of before stay on the
// old configuration while it drains; idle ones are closed here.
func (g *gateway) update(t *testing.T, edit func(map[string]any)) {
	t.Helper()
	g.replaceAndWait(t, edit, updatesAccepted)
	want := strconv.Itoa(g.serial)
	fresh := 0
	until(t, "twenty new connections in a row under the new configuration", func() (bool, string) {
		for ; fresh < 20; fresh++ {
			g.client.http.CloseIdleConnections()
			r, err := g.client.send(t.Context(), http.MethodGet, serialPath, nil)
			if err != nil || r.Body != want {
				fresh = 0
				return false, fmt.Sprintf("serial %q, want %q, %v", r.Body, want, err)
			}
		}
		return true, ""
	})
	g.client.http.CloseIdleConnections()
}

// alter makes updates change more than the plugin's configuration, and updates it
// with the given edit. The function that it returns undoes both.
func (g *gateway) alter(t *testing.T, by func(envoytest.Bootstrap) (envoytest.Bootstrap, error), edit func(map[string]any)) (undo func()) {
	t.Helper()
	g.altered = by
	undo = func() {
		g.altered = nil
		g.update(t, func(map[string]any) {})
	}
	g.update(t, edit)
	return undo
}

// leaveOut is an alteration: a block of the user's file is missing.
func leaveOut(block string) func(envoytest.Bootstrap) (envoytest.Bootstrap, error) {
	return func(b envoytest.Bootstrap) (envoytest.Bootstrap, error) { return b.Without(block) }
}

// inPlace is an alteration: a text that the user's file has once is another.
func inPlace(from, to string) func(envoytest.Bootstrap) (envoytest.Bootstrap, error) {
	return func(b envoytest.Bootstrap) (envoytest.Bootstrap, error) {
		if n := strings.Count(string(b), from); n != 1 {
			return "", fmt.Errorf("%q stands there %d times", from, n)
		}
		return envoytest.Bootstrap(strings.Replace(string(b), from, to, 1)), nil
	}
}

func (g *gateway) replaceAndWait(t *testing.T, edit func(map[string]any), counter string) {
	t.Helper()
	before := g.lds(t)
	g.replace(t, edit)
	until(t, counter+" to rise", func() (bool, string) {
		now := g.lds(t)
		if counter == updatesAccepted && now[updatesRejected] > before[updatesRejected] {
			t.Fatalf("update rejected:\n%s", g.envoy.Log.Tail(10))
		}
		return now[counter] > before[counter], fmt.Sprint(now)
	})
}

func (g *gateway) lds(t *testing.T) envoytest.Stats {
	return g.stats(t, `^listener_manager\.lds\.update_(success|rejected)$`)
}

// traffic runs turns of the sessions in a loop on several connections until stop
// is called, which reports how many there were and what failed.
func (g *gateway) traffic(t *testing.T, homes map[string]string) (stop func() (int, []string)) {
	ids := keys(homes)
	ctx, cancel := context.WithCancel(t.Context())
	var (
		all    sync.WaitGroup
		n      atomic.Int64
		mu     sync.Mutex
		failed []string
	)
	for w := range 4 {
		all.Go(func() {
			for i := w; ctx.Err() == nil; i++ {
				id := ids[i%len(ids)]
				// A turn that has begun is finished: stopping must not look like a failure.
				r, err := g.client.send(context.WithoutCancel(ctx), http.MethodPost, chatPath, strings.NewReader("{}"),
					"X-Session-ID", id, envoytest.DoHeader, "delay=5ms")
				n.Add(1)
				if err != nil || r.Status != 200 || r.Served != homes[id] {
					mu.Lock()
					failed = append(failed, fmt.Sprintf("%s at %s: status %d, served by %s, reason %s, %v", id, homes[id], r.Status, r.Served, r.Reason, err))
					mu.Unlock()
				}
			}
		})
	}
	return func() (int, []string) {
		cancel()
		all.Wait()
		return int(n.Load()), failed
	}
}

func TestConfigurationUpdateUnderTraffic(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		homes := g.turns(t, newIDs(60), "placed")
		// One stream lives through all updates.
		res := g.stream(t, t.Context(), newID(), "chunks=3&hold=1")
		if res == nil {
			t.FailNow()
		}
		defer res.Body.Close()
		stop := g.traffic(t, homes)
		reversed := []string{g.replicas[2].Addr, g.replicas[1].Addr, g.replicas[0].Addr}
		for _, edit := range []func(map[string]any){
			func(c map[string]any) { c["session"] = map[string]any{"idle_timeout": "1h"} },
			func(c map[string]any) { c["replicas"] = reversed },
			func(c map[string]any) { c["target"] = map[string]any{"spares": 1} },
			func(map[string]any) {},
		} {
			g.update(t, edit)
			for id, addr := range g.turns(t, keys(homes), "pinned") {
				if addr != homes[id] {
					g.complain(t, "session %s moved from %s to %s", id, homes[id], addr)
				}
			}
		}
		n, failed := stop()
		if n < 20 || len(failed) > 0 {
			t.Errorf("%d of %d turns failed during the updates, the first: %q", len(failed), n, failed[:min(3, len(failed))])
		}
		g.waitInflight(t, 1)
		for _, r := range g.replicas {
			r.Release()
		}
		if r, err := read(res); err != nil || strings.Count(r.Body, "data:") != 3 {
			t.Errorf("the stream that lived through the updates: %q, %v", r.Body, err)
		}
		// In balance: 61 sessions, and the next ones fill the gap.
		g.waitOpen(t, 20, 20, 21)
		g.turns(t, newIDs(2), "placed")
		g.waitOpen(t, 21, 21, 21)
	})
}

func TestBadConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		homes := g.turns(t, newIDs(12), "placed")
		cases := []struct {
			name string
			edit func(map[string]any)
			line []string // all in one line of the log
		}{
			{"unknown key", func(c map[string]any) { c["sesion"] = map[string]any{} }, []string{"sesion", "session"}},
			{"unknown nested key", func(c map[string]any) { c["session"] = map[string]any{"idle_timeuot": "1h"} },
				[]string{"session", "idle_timeuot", "idle_timeout"}},
			{"bad duration", func(c map[string]any) { c["session"] = map[string]any{"idle_timeout": "soon"} },
				[]string{"session.idle_timeout", "soon"}},
			{"unknown policy", func(c map[string]any) { c["policy"] = "stickiest" }, []string{"policy", "stickiest", "sticky_least_loaded"}},
			{"bad address", func(c map[string]any) { c["replicas"] = []string{"nowhere"} }, []string{"replicas[0]", "nowhere"}},
			{"no replicas", func(c map[string]any) { delete(c, "replicas") }, []string{"replicas"}},
		}
		stop := g.traffic(t, homes)
		for _, c := range cases {
			mark := g.envoy.Log.Len()
			g.replaceAndWait(t, c.edit, updatesRejected)
			until(t, fmt.Sprintf("%s: a log line of pinwheel with %q", c.name, c.line), func() (bool, string) {
				text := g.envoy.Log.Since(mark)
				return lineWith(text, append(c.line, "pinwheel")), tail(text, 8)
			})
		}
		n, failed := stop()
		if n < 20 || len(failed) > 0 {
			t.Errorf("%d of %d turns failed, the first: %q", len(failed), n, failed[:min(3, len(failed))])
		}
		g.stillPinned(t, homes)              // the old configuration is in force
		g.update(t, func(map[string]any) {}) // and a good one is accepted again
		g.stillPinned(t, homes)
	})
}

// A replica added by an update moves nobody and takes the next sessions; one
// removed gives its sessions up and only those.
func TestReplicaRemovedAndAddedByUpdate(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		all := []string{g.replicas[0].Addr, g.replicas[1].Addr, g.replicas[2].Addr}
		homes := g.turns(t, newIDs(30), "placed")
		g.update(t, func(c map[string]any) { c["replicas"] = all[:2] })
		defer g.update(t, func(map[string]any) {})
		for id, home := range homes {
			reason := "pinned"
			if home == all[2] {
				reason = "failover_removed"
			}
			r := g.turn(t, id, reason)
			if reason == "pinned" && r.Served != home || r.Served == all[2] {
				t.Errorf("session %s of %s went to %s", id, home, r.Served)
			}
			homes[id] = r.Served
		}
		g.waitOpen(t, 0, 15, 15)
		g.update(t, func(map[string]any) {})
		g.stillPinned(t, homes)
		// While the newcomer catches up it takes at most twice its share, so that the
		// sessions' first prefills do not all meet there.
		next := g.turns(t, newIDs(21), "placed")
		if got := g.spread(next)[2]; got < 7 || got > 14 {
			t.Errorf("%d of 21 new sessions went to the added replica, want 7 to 14", got)
		}
		for id, home := range next {
			homes[id] = home
		}
		g.stillPinned(t, homes)
	})
}

// Scaling down and up again, or rolling back, within Envoy's drain time: Envoy
// meets a text that it knows, takes up the plugin context of before and calls
// neither start nor configure.
func TestReturnToEarlierConfiguration(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		all := []string{g.replicas[0].Addr, g.replicas[1].Addr, g.replicas[2].Addr}
		g.verbatim = true
		defer func() { g.verbatim = false }()
		g.update(t, func(map[string]any) {})
		homes := g.turns(t, newIDs(30), "placed")
		g.update(t, func(c map[string]any) { c["replicas"] = all[:2] })
		for id := range homes {
			homes[id] = g.turn(t, id, map[bool]string{true: "failover_removed", false: "pinned"}[homes[id] == all[2]]).Served
		}
		g.update(t, func(map[string]any) {})
		g.stillPinned(t, homes)
		// Streams on new connections tell the plugin, a second after the update at
		// the earliest.
		until(t, "new sessions on the replica that is back", func() (bool, string) {
			g.client.http.CloseIdleConnections()
			fresh := g.turns(t, newIDs(3), "placed")
			g.release(t, keys(fresh)...)
			got := g.spread(fresh)
			return got[2] > 0, fmt.Sprint(got)
		})
		g.stillPinned(t, homes)
		next := g.turns(t, newIDs(21), "placed")
		if got := g.spread(next)[2]; got < 7 || got > 14 {
			t.Errorf("%d of 21 new sessions went to the replica that is back, want 7 to 14", got)
		}
	})
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

// lineWith reports whether one line of text holds all the words.
func lineWith(text string, words []string) bool {
lines:
	for line := range strings.Lines(text) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		return true
	}
	return false
}
