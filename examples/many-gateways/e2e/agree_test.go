//go:build etcd

package e2e

import (
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

// 2,000 sessions whose first turns come to both gateways at once have one home each, and the replicas have as many of them.
func TestFirstTurnsRaced(t *testing.T) {
	each(t, func(t *testing.T, envoy string) {
		r := start(t, envoy, startEtcd(t, 1), nil)
		r.waitState(t, "ok")
		began := time.Now()
		all := r.Run(t.Context(), fleet.Load{Name: "raced", Sessions: 2000, Turns: 5, Raced: true, Clients: 16})
		noneFailed(t, all)
		allAgree(t, "raced", all)
		spread := all.Spread(r.addresses())
		for _, n := range spread {
			if n < 450 || n > 550 {
				t.Errorf("sessions per replica %v, want 500 within a tenth", spread)
				break
			}
		}
		took := all.Took(func(turn int, _ fleet.Answer) bool { return turn > 1 })
		first := all.Took(func(turn int, _ fleet.Answer) bool { return turn < 2 })
		t.Logf("%d turns in %v; sessions per replica %v; first turns p50 %v, p99 %v; later ones %v, %v; calls %v", all.Turns(),
			time.Since(began).Round(time.Millisecond), spread, fleet.Quantile(first, 0.5), fleet.Quantile(first, 0.99),
			fleet.Quantile(took, 0.5), fleet.Quantile(took, 0.99), r.calls(t))
		// Both gateways ask for each session once, and for nothing at later turns.
		if n := r.calls(t).Of("create", "ok"); n < 2000 || n > 4000 {
			t.Errorf("%d sessions were agreed by %d calls, want 2000 to 4000", len(all), n)
		}
		keys, err := r.etcd[0].Keys(t.Context(), "/pinwheel/default/s/", "")
		if err != nil || len(keys) != 2000 {
			t.Errorf("etcd has %d homes, want 2000 (%v)", len(keys), err)
		}
	})
}

// Without an agreement the gateways place each session on their own: what the others count as disagreement happens.
func TestWithoutAgreement(t *testing.T) {
	each(t, func(t *testing.T, envoy string) {
		r := start(t, envoy, nil, nil)
		all := r.Run(t.Context(), fleet.Load{Name: "alone", Sessions: 200, Turns: 3, Raced: true, Clients: 16})
		noneFailed(t, all)
		if n := len(all.Disagreeing()); n < 50 {
			t.Errorf("%d of 200 sessions had turns on two replicas, want most", n)
		}
	})
}
