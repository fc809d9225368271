package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// Choice and reservation are one step over both workers: a burst of first turns
// spreads exactly.
func TestBurstOfNewSessionsSpreadsExactly(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		var open []string
		for round := range 10 {
			ids := newIDs(60)
			served := g.turns(t, ids, "placed")
			if got := g.spread(served); !slices.Equal(got, []int{20, 20, 20}) {
				t.Fatalf("round %d: new sessions per replica %v, want 20/20/20", round, got)
			}
			open = append(open, ids...)
			if round == 4 {
				g.waitOpen(t, 100, 100, 100)
			}
			if round >= 4 { // the first rounds pile up, the later ones start from empty
				g.release(t, open...)
				open = nil
			}
		}
	})
}

func TestSessionsStay(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		before := g.quietCounts(t)
		ids := newIDs(300)
		limit := make(chan struct{}, 50)
		var mu sync.Mutex
		homes := map[string]string{}
		together(len(ids), func(i int) {
			limit <- struct{}{}
			defer func() { <-limit }()
			home := g.turn(t, ids[i], "placed").Served
			for turn := 2; turn <= 4; turn++ {
				if r := g.turn(t, ids[i], "pinned"); r.Served != home {
					t.Errorf("turn %d of %s went to %s, the first to %s", turn, ids[i], r.Served, home)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			homes[ids[i]] = home
		})
		got := g.spread(homes)
		if slices.Max(got)-slices.Min(got) > 1 {
			t.Errorf("sessions per replica %v, want within 1", got)
		}
		g.waitOpen(t, 100, 100, 100)
		g.waitCount(t, before, statDecisions+"placed", 300)
		g.waitCount(t, before, statDecisions+"pinned", 900)
		g.waitCount(t, before, statPlacements, 300)
		// The client is told who served, not who was named: this says, of one response
		// a tick, that Envoy obeyed.
		g.waitCount(t, before, statServedElsewhere, 0)
		g.nothingLeaks(t)
	})
}

// Without a session id a request is spread like any other and leaves no trace.
func TestKeylessSpreadsEvenly(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		before := g.quietCounts(t)
		served := map[string]string{}
		conn := g.dial(t) // one connection, one worker
		for i := range 60 {
			r := conn.get(t)
			g.expect(t, r, "keyless")
			served[fmt.Sprint(i)] = r.Served
		}
		if got := g.spread(served); !slices.Equal(got, []int{20, 20, 20}) {
			t.Errorf("keyless requests of one worker per replica %v, want 20/20/20", got)
		}
		clear(served)
		var mu sync.Mutex
		together(60, func(i int) {
			r := g.turn(t, "", "keyless")
			mu.Lock()
			defer mu.Unlock()
			served[fmt.Sprint(i)] = r.Served
		})
		// Each of the two workers rotates on its own.
		if got := g.spread(served); slices.Max(got)-slices.Min(got) > 2 {
			t.Errorf("keyless requests of both workers per replica %v, want within 2", got)
		}
		g.waitCount(t, before, statDecisions+"keyless", 120)
		g.waitCount(t, before, statServedElsewhere, 0)
		g.waitOpen(t, 0, 0, 0)

		// They share no key with anybody: a session opened now is a new one.
		home := g.turn(t, newID(), "placed").Served
		g.waitOpen(t, 0, 0, 1)
		clear(served)
		for i := range 20 {
			served[fmt.Sprint(i)] = g.turn(t, "", "keyless").Served
		}
		for i, n := range g.spread(served) {
			if busy := g.replicas[i].Addr == home; busy && n != 0 || !busy && n < 8 {
				t.Errorf("keyless beside a session on %s: %v, want none there and the rest even", home, g.spread(served))
				break
			}
		}
	})
}

// nothingLeaks checks what the replicas saw against what they may see.
func (g *gateway) nothingLeaks(t *testing.T) {
	t.Helper()
	for _, r := range g.replicas {
		for _, req := range r.Requests() {
			if v := req.Header.Values(targetHeader); v != nil {
				t.Errorf("%s saw %s: %q", r.Addr, targetHeader, v)
			}
			if len(req.Path) >= 15 && req.Path[:15] == "/finish_session" {
				t.Errorf("%s saw %s %.80s", r.Addr, req.Method, req.Path)
			}
		}
	}
}
