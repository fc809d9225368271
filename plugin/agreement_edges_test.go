package plugin

import (
	"fmt"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/etcd"
)

// A sweep writes the pins anew that stay in a shard.
func TestASweepKeepsDoubt(t *testing.T) {
	a := startAgreeing(t, 1, fourReplicas+agreementOn+`,"session":{"idle_timeout":"8s","max_sessions":10}`) // one shard
	g := a.gateways[0]
	a.poll()
	g.turn("old")
	g.Advance(5 * time.Second)
	a.etcd.SetFaults(etcd.Faults{Outage: etcd.Refused})
	g.slowTurn("s")
	g.Advance(5 * time.Second)
	if n := g.sessions("default"); n != 1 {
		t.Fatalf("%d sessions, one has expired", n)
	}
	a.etcd.SetFaults(etcd.Faults{})
	a.poll()
	a.poll()
	if got := g.turn("s"); len(a.etcd.Keys("/pinwheel/default/r/"+got.replica+"/")) != 1 {
		t.Errorf("etcd was not told of a session that was placed on %s during the outage", got.replica)
	}
}

// While an old configuration drains both poll.
func TestAnotherPrefixHasItsOwnLog(t *testing.T) {
	a := startAgreeing(t, 2, fourReplicas+agreementOn)
	a.poll()
	old := a.gateways[0].begin(0, "")
	for _, g := range a.gateways {
		if err := g.reconfigure(fourReplicas + `,"agreement":{"kind":"etcd","cluster":"etcd","prefix":"/new"},"admin":{"path":"/pinwheel"}`); err != nil {
			t.Fatal(err)
		}
	}
	a.poll()
	for n := range 10 {
		id := fmt.Sprint(n)
		for _, g := range a.gateways {
			g.turn(id)
		}
		a.gateways[1].release(id)
		a.poll()
		a.poll()
		if n := a.gateways[0].sessions("default"); n != 0 {
			t.Fatalf("session %s: gateway 0 has not heard of its end", id)
		}
	}
	a.gateways[0].end(old, hostsim.EndNormal)
}
