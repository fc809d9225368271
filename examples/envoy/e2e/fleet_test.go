package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// round sends one turn of every session, twelve at a time, and returns who served
// each. No client may see a failure. meanwhile runs once when a quarter of the
// turns has been sent.
func (g *gateway) round(t *testing.T, ids []string, meanwhile func()) map[string]string {
	t.Helper()
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		todo  = slices.Clone(ids)
		homes = map[string]string{}
		once  sync.Once
	)
	next := func() (id string) {
		mu.Lock()
		defer mu.Unlock()
		if len(todo) > 0 {
			id, todo = todo[0], todo[1:]
		}
		return id
	}
	for range 12 {
		all.Go(func() {
			for id := next(); id != ""; id = next() {
				r, err := g.client.send(context.WithoutCancel(t.Context()), http.MethodPost, chatPath, strings.NewReader("{}"),
					"X-Session-ID", id, envoytest.DoHeader, "delay=5ms")
				if err != nil || r.Status != 200 || r.Served == "" {
					g.complain(t, "turn of %s: status %d, %v; want 200", id, r.Status, err)
				}
				mu.Lock()
				homes[id] = r.Served
				quarter := len(homes) == len(ids)/4
				mu.Unlock()
				if quarter && meanwhile != nil {
					once.Do(meanwhile)
				}
			}
		})
	}
	all.Wait()
	return homes
}

// One of four replicas dies while 120 sessions are at work: no client sees it, its
// sessions spread evenly and stay where they went, nobody else moves, and when it
// is back new sessions come to it.
func TestAReplicaDiesUnderLoad(t *testing.T) {
	t.Parallel()
	each(t, fleet, func(t *testing.T, g *gateway) {
		g.update(t, func(c map[string]any) {
			c["health"] = map[string]any{"cooldown": "1s", "max_cooldown": "1s"}
		})
		defer g.update(t, func(map[string]any) {})
		ids := newIDs(120)
		homes := g.turns(t, ids, "placed")
		g.waitOpen(t, 0, 0, 0, 0, 30, 30, 30, 30)
		dead := g.replicas[1]
		after := g.round(t, ids, dead.Close)
		reopen := sync.OnceFunc(func() {
			if err := dead.Reopen(); err != nil {
				t.Error(err)
			}
		})
		defer reopen()
		for range 2 {
			after = g.round(t, ids, nil)
		}
		for id, home := range homes {
			if home != dead.Addr && after[id] != home {
				t.Errorf("session %s moved from %s to %s", id, home, after[id])
			}
		}
		g.waitOpen(t, 0, 0, 0, 0, 0, 40, 40, 40)
		reopen()
		until(t, "new sessions on the replica that is back", func() (bool, string) {
			id := newID()
			r := g.turn(t, id, "placed")
			after[id] = r.Served
			return r.Served == dead.Addr, r.Served
		})
		g.stillPinned(t, after)
		g.release(t, slices.Collect(maps.Keys(after))...)
	})
}

// All four replicas are replaced, one after another, while 120 sessions are at
// work. Of the 30 that the last one's predecessor leaves it may take 15: a newcomer
// gets twice its fair share at most.
func TestRollingReplacementUnderLoad(t *testing.T) {
	t.Parallel()
	each(t, fleet, func(t *testing.T, g *gateway) {
		var members []string
		for _, r := range g.replicas[:4] {
			members = append(members, r.Addr)
		}
		ids := newIDs(120)
		g.turns(t, ids, "placed")
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		load.Go(func() {
			for ctx.Err() == nil {
				g.round(t, ids, nil)
			}
		})
		defer g.update(t, func(map[string]any) {})
		for i, old := range g.replicas[:4] {
			members[i] = g.replicas[i+4].Addr
			g.update(t, func(c map[string]any) { c["replicas"] = members })
			old.Close()
			defer func() {
				if err := old.Reopen(); err != nil {
					t.Error(err)
				}
			}()
		}
		stop()
		load.Wait()
		after := g.round(t, ids, nil)
		g.stillPinned(t, after)
		counts := g.spread(after)
		if slices.Max(counts[:4]) > 0 || slices.Min(counts[4:]) < 12 {
			t.Errorf("sessions per replica %v, want none on the first four and 120 on the others, 12 at least on each", counts)
		}
		g.release(t, ids...)
	})
}

// Pins outlive a change of policy and of its thresholds, under load.
func TestPolicyChangeUnderLoad(t *testing.T) {
	t.Parallel()
	each(t, fleet, func(t *testing.T, g *gateway) {
		homes := g.turns(t, newIDs(60), "placed")
		stop := g.traffic(t, homes)
		for _, edit := range []func(map[string]any){
			func(c map[string]any) { c["policy"] = "consistent_hash" },
			func(c map[string]any) {
				c["policy"], c["consistent_hash"] = "consistent_hash", map[string]any{"load_factor": 1}
				c["health"] = map[string]any{"failures": 5, "cooldown": "1s"}
			},
			func(map[string]any) {},
		} {
			g.update(t, edit)
		}
		if n, failed := stop(); n < 20 || len(failed) > 0 {
			t.Errorf("%d of %d turns failed, the first: %q", len(failed), n, failed[:min(3, len(failed))])
		}
		g.stillPinned(t, homes)
	})
}

// A worker's VM ends under load: its streams are cut, another one serves at once,
// pins survive, and what the dead one counted as in flight is forgotten.
func TestAWorkerCrashesUnderLoad(t *testing.T) {
	t.Parallel()
	each(t, crashing, func(t *testing.T, g *gateway) {
		homes := g.turns(t, newIDs(30), "placed")
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		const held = 10
		cut := make(chan struct{}, held) // one for each stream that the gateway ends: the replicas hold all
		for i := range held {
			id := keys(homes)[i]
			if res := g.stream(t, ctx, id, "chunks=1&hold=1"); res != nil {
				defer res.Body.Close()
				go func() {
					if _, err := io.Copy(io.Discard, res.Body); err != nil && ctx.Err() == nil {
						cut <- struct{}{}
					}
				}()
			}
		}
		g.waitInflight(t, held)
		reloads := func() (n uint64) {
			for _, v := range g.stats(t, `vm_reload_success$`) {
				n += v
			}
			return n
		}
		before := reloads()
		// Envoy leaves a request whose VM ends without an answer.
		send := func(header ...string) (reply, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return g.client.send(ctx, http.MethodPost, chatPath, strings.NewReader("{}"), header...)
		}
		if r, err := send("x-pinwheel-inject", "trap"); err == nil && r.Status == 200 {
			t.Errorf("the request that ends the VM: %d %s", r.Status, r.Body)
		}
		until(t, "the worker to have a fresh VM", func() (bool, string) {
			// Its next request makes it, and new connections find that worker. A request
			// that comes sooner is refused: there is no plugin to route it.
			g.client.http.CloseIdleConnections()
			_, _ = send()
			return reloads() > before, fmt.Sprint(g.stats(t, `vm_reload`))
		})
		for id, home := range homes {
			until(t, "a turn of "+id, func() (bool, string) {
				r, err := send("X-Session-ID", id)
				if err == nil && r.Status == 200 && (r.Served != home || r.Reason != "pinned") {
					t.Errorf("session %s of %s: %s %s", id, home, r.Reason, r.Served)
				}
				return err == nil && r.Status == 200, fmt.Sprint(r.Status, err)
			})
		}
		until(t, "streams of the dead VM to be cut, and counted no more", func() (bool, string) {
			sum := uint64(len(cut))
			got := g.perReplica(t, statInflight)
			for _, v := range got {
				sum += v
			}
			return sum == held && len(cut) > 0, fmt.Sprintf("%v, and %d are cut", got, len(cut))
		})
		leave()
		g.stillPinned(t, homes)
	})
}
