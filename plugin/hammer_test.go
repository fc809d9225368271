package plugin

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// hammer runs do(worker) on a goroutine of its own for each worker, all at once.
func (g *gateway) hammer(do func(worker int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for w := range g.Workers() {
		wg.Go(func() {
			<-start
			do(w)
		})
	}
	close(start)
	wg.Wait()
}

// vllm-project/aibrix#2422, on real threads: a burst of first turns all saw the
// same counters.
func TestSixtyNewSessionsAtOnce(t *testing.T) {
	g := startGateway(t, 4, threeReplicas)
	for round := range 10 {
		g.hammer(func(w int) {
			for i := range 15 {
				if r := g.on(w, turnOf(fmt.Sprint(round, w, i))); r.reason != "placed" {
					t.Errorf("round %d: %s", round, r.reason)
				}
			}
		})
		n := 20 * (round + 1)
		if g.mustOpen(n, n, n); t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	g.Advance(2 * tick)
	if n := g.Metric("pinwheel_errors_total.kind.cas_exhausted"); n != 0 {
		t.Errorf("%d placements gave up", n)
	}
}

func TestNoTurnLeavesItsReplica(t *testing.T) {
	const sessions, turns = 300, 4
	g := startGateway(t, 4, threeReplicas)
	var homes [turns][sessions]string
	for turn := range turns {
		g.hammer(func(w int) {
			for i := range sessions {
				if (i+turn)%g.Workers() == w { // another worker at each turn
					homes[turn][i] = g.on(w, turnOf(fmt.Sprint(i))).replica
				}
			}
		})
	}
	for turn := range turns {
		if homes[turn] != homes[0] {
			t.Errorf("turn %d left the replicas of the first", turn)
		}
	}
	g.mustOpen(100, 100, 100)
}

// One session, all its first turns at once: one pin.
func TestFirstTurnsOfOneSessionAtOnce(t *testing.T) {
	g := startGateway(t, 4, threeReplicas)
	for i := range 100 {
		var homes [4]string
		g.hammer(func(w int) { homes[w] = g.on(w, turnOf(fmt.Sprint(i))).replica })
		if homes != [4]string{homes[0], homes[0], homes[0], homes[0]} {
			t.Errorf("session %d is on %v", i, homes)
		}
	}
	if n := g.sessions("default"); n != 100 {
		t.Errorf("%d sessions counted, want 100", n)
	}
}

// Everything at once: turns, releases, keyless traffic, ticks and updates. Counts
// equal pins when it is over.
func TestEverythingAtOnce(t *testing.T) {
	g := startGateway(t, 3, threeReplicas+`,"session":{"max_sessions":64}`)
	g.hammer(func(w int) {
		for i := range 400 {
			id := fmt.Sprint(i * (w + 1) % 90)
			switch i % 5 {
			case 0:
				if r := g.on(w, hosttest.Request{Method: "POST", Path: "/finish_session?session_id=" + id}); r.Status != 200 {
					t.Errorf("release: %d", r.Status)
				}
			case 1:
				g.on(w, hosttest.Request{})
			default:
				g.on(w, turnOf(id))
			}
			if w == 0 && i%40 == 7 {
				g.Advance(tick)
			}
			if w == 1 && i%100 == 50 {
				if err := g.reconfigure([]string{threeReplicas, twoReplicas}[i/100%2] + `,"session":{"max_sessions":64}`); err != nil {
					t.Error(err)
				}
			}
		}
	})
	pins := map[uint32]int{}
	for _, key := range g.SharedData().Keys() {
		if len(key) > 14 && key[:14] == keyRoot+"default/s/" {
			value, _, _ := g.SharedData().Get(key)
			for sh, i := shard(value), 0; i < sh.len(); i++ {
				pins[sh.pin(i).Replica]++
			}
		}
	}
	for _, c := range g.record("default").List {
		if pins[c.ID] != int(c.Open) {
			t.Errorf("%s counts %d sessions, %d are pinned there", c.Address, c.Open, pins[c.ID])
		}
	}
	if n := g.sessions("default"); n == 0 || n > 64 {
		t.Errorf("%d sessions open, the limit is 64", n)
	}
}

// vllm-project/aibrix#2422, step by step: every worker has read the counts, all of
// them alike, before the first one writes.
func TestAllReadBeforeAnyWrites(t *testing.T) {
	g := startGateway(t, 4, replicas(4))
	g.on(0, turnOf("first")) // the record is there
	g.release("first")
	for round := range 16 {
		var read [4]bool
		place := func(w int) { g.on(w, turnOf(fmt.Sprint(round, "/", w))) }
		g.OnSharedData(func(w int, op hostsim.SharedOp, key string) {
			if op == hostsim.SharedSet && key == keyRoot+"default/replicas" && !read[w] {
				if read[w] = true; w < 3 {
					place(w + 1)
				}
			}
		})
		place(0)
		g.OnSharedData(nil)
		if read != [4]bool{true, true, true, true} {
			t.Fatalf("round %d: only %v have placed", round, read)
		}
		n := round + 1
		if g.mustOpen(n, n, n, n); t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	g.Advance(2 * tick)
	if n := g.Metric("pinwheel_cas_retries_total.pool.default"); n < 16*3 {
		t.Errorf("%d retries: the workers did not meet", n)
	}
}
