//go:build etcd

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/etcdtest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

// Sessions without a turn go out of etcd, some at a time, and hold up nobody; those with turns stay where they are.
func TestLeasesExpire(t *testing.T) {
	each(t, func(t *testing.T, envoy string) {
		etcd := startEtcd(t, 1)
		r := start(t, envoy, etcd, func(c map[string]any) {
			patient(c)
			c["session"] = map[string]any{"idle_timeout": "2s", "max_sessions": 2000} // two leases for each second
		})
		r.waitState(t, "ok")
		before := r.calls(t)

		// Busy sessions have a turn each 0.6 s, at the gateways in turn, for four times the time after which idle ones end.
		busy := make(chan fleet.Sessions)
		go func() {
			busy <- r.Run(context.Background(), fleet.Load{Name: "busy", Sessions: 40, Turns: 15, Every: 5 * time.Millisecond, Gap: 600 * time.Millisecond})
		}()
		ctx, stop := context.WithCancel(t.Context())
		writes := make(chan []time.Duration)
		go func() { writes <- probe(ctx, etcd[0]) }()
		idle := r.Run(t.Context(), fleet.Load{Name: "idle", Sessions: 1400, Turns: 1, Every: 5 * time.Millisecond})
		most := largestLease(t, etcd[0])
		kept := <-busy
		stop()
		took := <-writes
		noneFailed(t, idle)
		noneFailed(t, kept)
		allAgree(t, "busy", kept)
		slices.Sort(took)
		calls := r.calls(t)
		t.Logf("%d writes beside it: p50 %v, p99 %v, longest %v; the largest lease has %d keys; turns p99 %v; %d calls timed out; calls %v",
			len(took), fleet.Quantile(took, 0.5), fleet.Quantile(took, 0.99), fleet.Quantile(took, 1), most,
			fleet.Quantile(idle.Took(fleet.Any), 0.99), calls.Of("", "timeout")-before.Of("", "timeout"), calls)
		if p99 := fleet.Quantile(took, 0.99); p99 > 50*time.Millisecond {
			t.Errorf("writes took %v (p99), want 50 ms at most", p99)
		}
		if most > 4000 {
			t.Errorf("a lease has %d keys: all of them go at once", most)
		}
		until(t, "idle sessions to be gone", func() (bool, string) {
			keys, err := etcd[0].Keys(t.Context(), "/pinwheel/default/", "")
			if err != nil {
				t.Fatal(err)
			}
			data, _ := json.Marshal(keys)
			return len(keys) == 0, string(data[:min(len(data), 300)])
		})
		for _, g := range r.Gateways {
			until(t, "no session on any replica", func() (bool, string) {
				s, err := g.Status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range s.Pools {
					for _, replica := range p.Replicas {
						if replica.FleetSessions != 0 {
							data, _ := json.Marshal(s)
							return false, string(data)
						}
					}
				}
				return true, ""
			})
		}
	})
}

// probe writes a key again and again, and returns how long each write took.
func probe(ctx context.Context, s *etcdtest.Server) (took []time.Duration) {
	for ctx.Err() == nil {
		began := time.Now()
		_, err := s.Do(context.Background(), "/v3/kv/put", "", map[string]any{"key": etcdtest.B64("/probe"), "value": etcdtest.B64("x")})
		if err == nil {
			took = append(took, time.Since(began))
		}
		time.Sleep(5 * time.Millisecond)
	}
	return took
}

// largestLease is how many keys there are at most under one lease.
func largestLease(t *testing.T, s *etcdtest.Server) (most int) {
	t.Helper()
	var leases struct {
		Leases []struct{ ID string }
	}
	text, err := s.Do(t.Context(), "/v3/lease/leases", "", map[string]any{})
	if err == nil {
		err = json.Unmarshal(text, &leases)
	}
	for _, l := range leases.Leases {
		var of struct{ Keys [][]byte }
		if text, err = s.Do(t.Context(), "/v3/lease/timetolive", "", map[string]any{"ID": l.ID, "keys": true}); err == nil {
			err = json.Unmarshal(text, &of)
		}
		most = max(most, len(of.Keys))
	}
	if err != nil || most == 0 {
		t.Errorf("%d leases, the largest of %d keys: %v", len(leases.Leases), most, err)
	}
	return most
}
