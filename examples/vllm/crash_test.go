//go:build vllm

package vllm

import (
	"fmt"
	"testing"
)

// One of two replicas is killed while all sessions have turns in flight. No client sees an error, and its sessions go on
// where the other's are, which none of the other's leaves.
func crash(t *testing.T, replicas []*replica) {
	dead, survivor := replicas[1], replicas[0]
	g := startGateway(t, leastLoaded, replicas)
	defer g.envoy.Stop()

	p := plan{MaxToken: 16, Meet: 2, Finish: true, Sessions: agents(12, 0)}
	turns := 0
	for _, s := range p.Sessions {
		turns += len(s.Turns)
	}
	seen, failed, killed := 0, 0, 0
	before := map[string]int{} // sessions that the dead one served, and how many turns of theirs
	last := map[string]answer{}
	play(t, g, p, func(a answer) {
		if a.Error != "" {
			failed++
		}
		previous := last[a.Session]
		last[a.Session] = a
		if seen++; a.Served == dead.addr {
			before[a.Session]++
		}
		// All sessions have had two turns. This is the first of the third ones; the others are on their way.
		if killed == 0 && a.Turn == p.Meet {
			killed = seen
			dead.crash(t)
		}
		// Whom the first attempt reached, and not a retry, has its pin there.
		if previous.Served == survivor.addr && previous.Attempts == 1 && (a.Served != survivor.addr || a.Reason != "pinned") {
			t.Errorf("turn %d of %s, which was at home on the survivor: %s on %s", a.Turn, a.Session, a.Reason, a.Served)
		}
	})
	if len(before) != len(p.Sessions)/2 {
		t.Fatalf("the second replica served %d sessions, want %d; it was killed after %d turns", len(before), len(p.Sessions)/2, killed)
	}
	for id, a := range last {
		if a.Served != survivor.addr || a.Named != survivor.addr || a.Attempts != 1 {
			t.Errorf("the last turn of %s: %+v; want the survivor at the first attempt", id, a)
		}
	}
	eventually(t, "the count of sessions that moved", func() string { // at the plugin's ticks
		if moved := g.sum(t, "pinwheel_failovers_total"); moved != uint64(len(before)) {
			return fmt.Sprintf("%d, want %d", moved, len(before))
		}
		return ""
	})
	fmt.Printf("a replica killed after %d of %d turns: %d sessions moved, %d requests had a second attempt, %d client errors\n",
		killed, turns, len(before), g.sum(t, "pinwheel_fallbacks_total"), failed)
	g.checkOver(t, len(p.Sessions))
}
