//go:build etcd

package e2e

import (
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

// What two gateways agree on, in one pair of them.
func TestAgreement(t *testing.T) {
	each(t, func(t *testing.T, envoy string) {
		r := start(t, envoy, startEtcd(t, 1), patient)
		r.waitState(t, "ok")
		t.Run("first turns raced", r.raced)
		t.Run("sessions finished", func(t *testing.T) { r.finished(t, "") })
		t.Run("a replica dies", r.replicaDies)
	})
}

// raced sends 2,000 sessions whose first turns come to both gateways at once: they have one home each, and the replicas have as
// many of them.
func (r *rig) raced(t *testing.T) {
	first := r.Run(t.Context(), fleet.Load{Name: "raced", Sessions: 2000, Turns: 1, Raced: true, Clients: 16})
	asked := r.calls(t)
	later := r.More(t.Context(), first, fleet.Load{Turns: 4, Clients: 16})
	noneFailed(t, first)
	noneFailed(t, later)
	allAgree(t, "raced", first)
	allAgree(t, "later", later)
	stayed(t, "later", first, later)
	spread := first.Spread(r.addresses())
	if most := slices.Max(spread); most > 565 { // a tenth, and what the other gateway places between two polls
		t.Errorf("sessions per replica %v, want 500 and a tenth at most", spread)
	}
	calls := r.calls(t)
	took, firsts := later.Took(fleet.Any), first.Took(fleet.Any)
	t.Logf("sessions per replica %v; first turns p50 %v, p99 %v; later ones %v, %v; calls %v", spread,
		fleet.Quantile(firsts, 0.5), fleet.Quantile(firsts, 0.99), fleet.Quantile(took, 0.5), fleet.Quantile(took, 0.99), calls)
	// Each gateway asks for a session once; few pins are in doubt at the second turn.
	if n := asked.Of("create", "ok"); n < 4000 {
		t.Errorf("2000 sessions that came to both gateways made %d questions, want 4000", n)
	}
	if n := calls.Of("create", "ok") - asked.Of("create", "ok"); n > 80 {
		t.Errorf("%d later turns made %d questions, want 80 at most", later.Turns(), n)
	}
	keys, err := r.etcd[0].Keys(t.Context(), "/pinwheel/default/s/", "")
	if err != nil || len(keys) != 2000 {
		t.Errorf("etcd has %d homes, want 2000 (%v)", len(keys), err)
	}
}

// Without an agreement the gateways place each session on their own: what the others count as disagreement happens.
func TestWithoutAgreement(t *testing.T) {
	envoy, err := wheel.Find(t.Context(), versions()[0])
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, envoy, nil, nil)
	all := r.Run(t.Context(), fleet.Load{Name: "alone", Sessions: 200, Turns: 3, Raced: true, Clients: 16})
	noneFailed(t, all)
	if n := len(all.Disagreeing()); n < 50 {
		t.Errorf("%d of 200 sessions had turns on two replicas, want most", n)
	}
}
