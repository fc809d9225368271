package policy_test

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

func TestJudge(t *testing.T) {
	const active, draining, unhealthy, removed = policy.Active, policy.Draining, policy.Unhealthy, policy.Removed
	for _, c := range []struct {
		name      string
		own, peer policy.State
		idle      int64 // of a timeout of 100
		want      policy.Reason
	}{
		{"its replica is active", active, active, 0, policy.Pinned},
		{"just before the timeout", active, active, 99, policy.Pinned},
		{"at the timeout", active, active, 100, policy.Expired},
		{"the clock went back", active, active, -50, policy.Pinned},
		{"draining serves its pins", draining, active, 0, policy.Pinned},
		{"unhealthy", unhealthy, active, 0, policy.FailoverUnhealthy},
		{"removed", removed, active, 0, policy.FailoverRemoved},
		{"expired comes before unhealthy", unhealthy, active, 100, policy.Expired},
		{"expired comes before removed", removed, active, 100, policy.Expired},
		{"panic keeps the unhealthy", unhealthy, unhealthy, 0, policy.Pinned},
		{"panic keeps the draining", draining, unhealthy, 0, policy.Pinned},
		{"a draining peer takes nobody", unhealthy, draining, 0, policy.Pinned},
		{"panic does not keep the removed", removed, unhealthy, 0, policy.FailoverRemoved},
		{"nobody is left", removed, removed, 0, policy.FailoverRemoved},
	} {
		r := replicas(1, 1)
		r.List[0].State, r.List[1].State = c.own, c.peer
		if got := policy.Judge(policy.Pin{Replica: 1, LastSeen: 1000}, r, 1000+c.idle, 100); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := policy.Judge(policy.Pin{Replica: 9}, replicas(0), 0, 100); got != policy.FailoverRemoved {
		t.Errorf("a replica that is forgotten: %v", got)
	}
}

func TestRenew(t *testing.T) {
	p := policy.Pin{Replica: 1, LastSeen: 1000}
	for idle, want := range map[int64]bool{-1: false, 0: false, 100: false, 101: true, 1599: true} {
		if got := policy.Renew(p, 1000+idle, 1600); got != want {
			t.Errorf("idle %d: %v", idle, got)
		}
	}
	// A timeout below 16 ms is recorded at every change of the clock.
	if !policy.Renew(p, 1001, 10) || policy.Renew(p, 1000, 10) {
		t.Error("a short timeout is not renewed")
	}
}

func TestReasonNames(t *testing.T) {
	want := []string{
		"pinned", "placed", "failover_unhealthy", "failover_removed", "expired",
		"keyless", "oversized", "table_full", "no_replica", "error",
	}
	if policy.NumReasons != len(want) {
		t.Fatalf("%d reasons, want %d", policy.NumReasons, len(want))
	}
	for r, name := range append(want, "unknown") {
		if got := policy.Reason(r).String(); got != name {
			t.Errorf("%d is %q, want %q", r, got, name)
		}
	}
}
