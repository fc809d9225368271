//go:build etcd

package e2e

import (
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

// finished releases sessions that both gateways know, some at each: within a poll both ask anew. The token is etcd's, or empty.
func (r *rig) finished(t *testing.T, token string) {
	t.Helper()
	const sessions = 120
	all := r.Run(t.Context(), fleet.Load{Name: "finished", Sessions: sessions, Turns: 2, Clients: 8})
	noneFailed(t, all)
	allAgree(t, "before the release", all)
	open := func() int {
		keys, err := r.etcd[0].Keys(t.Context(), "/pinwheel/default/s/", token)
		if err != nil {
			t.Fatal(err)
		}
		return len(keys)
	}
	before := open()
	half := all.IDs()[:sessions/2]
	for i, g := range r.Gateways {
		if body, err := g.Finish(t.Context(), half[i*len(half)/2:(i+1)*len(half)/2]...); err != nil {
			t.Fatalf("%s, %v", body, err)
		}
	}
	if n := open(); n != before-len(half) {
		t.Errorf("etcd had %d homes, and has %d after the release of %d", before, n, len(half))
	}
	for _, prefix := range []string{"s", "r"} {
		keys, err := r.etcd[0].Keys(t.Context(), "/pinwheel/default/"+prefix+"/", token)
		if err != nil || len(keys) != before-len(half) {
			t.Errorf("%d keys under /%s/, want %d (%v)", len(keys), prefix, before-len(half), err)
		}
	}
	asked := r.calls(t).Of("create", "ok")
	again := r.Run(t.Context(), fleet.Load{Name: "finished", Sessions: len(half), Turns: 2, Raced: true, Clients: 8})
	noneFailed(t, again)
	allAgree(t, "after the release", again)
	if n := r.calls(t).Of("create", "ok") - asked; n < uint64(2*len(half)) || n > uint64(3*len(half)) { // few are asked for twice
		t.Errorf("%d sessions that had been released were asked for %d times, want once by each gateway", len(half), n)
	}
	rest := r.More(t.Context(), all[len(half):], fleet.Load{Turns: 2, Clients: 8})
	stayed(t, "not released", all, rest)
	allAgree(t, "not released", rest)
}

// replicaDies closes a replica under load: its sessions go to the same new homes at both gateways, and no client sees it.
func (r *rig) replicaDies(t *testing.T) {
	before := r.Run(t.Context(), fleet.Load{Name: "session", Sessions: 400, Turns: 2, Clients: 16})
	noneFailed(t, before)
	allAgree(t, "before", before)
	dead := r.replicas[1]
	dead.Close()
	meanwhile := r.More(t.Context(), before, fleet.Load{Turns: 4, Clients: 64, Gap: 200 * time.Millisecond})
	noneFailed(t, meanwhile)
	time.Sleep(2500 * time.Millisecond) // two polls
	after := r.More(t.Context(), before, fleet.Load{Turns: 4, Clients: 16})
	noneFailed(t, after)
	allAgree(t, "after", after)
	homes, moved := before.Homes(), 0
	for id, home := range after.Homes() {
		switch {
		case home == dead.Addr:
			t.Errorf("%s is on the dead replica", id)
		case homes[id] == dead.Addr:
			moved++
		case homes[id] != home:
			t.Errorf("%s moved from %s to %s", id, homes[id], home)
		}
	}
	t.Logf("%d sessions moved, to %v; calls %v", moved, after.Spread(r.addresses()), r.calls(t))
	if moved < 50 {
		t.Errorf("%d sessions were on the dead replica, want a quarter of 400", moved)
	}
}
