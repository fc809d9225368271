//go:build etcd

package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/etcdtest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

// etcd is away for seconds under 300 requests a second. No client sees it, few wait for it, and when it is back every session
// has one home again.
func TestEtcdAway(t *testing.T) {
	each(t, func(t *testing.T, envoy string) {
		r := start(t, envoy, startEtcd(t, 1), nil)
		server := r.etcd[0]
		again := func() {
			if err := server.Again(t.Context()); err != nil {
				t.Error(err)
			}
		}
		for _, c := range []struct {
			name       string
			begin, end func()
			lasts      time.Duration
		}{
			{"killed", server.Kill, again, 4 * time.Second},
			{"held", server.Hold, server.Release, 4 * time.Second},
			{"restarted", server.Stop, again, 0},
		} {
			t.Run(c.name, func(t *testing.T) { r.outage(t, c.name, c.begin, c.end, c.lasts) })
		}
	})
}

// outage runs load while something is away, and holds it to what the page promises.
func (r *rig) outage(t *testing.T, name string, begin, end func(), lasts time.Duration) {
	r.waitState(t, "ok")
	before := r.reported(t)
	load := fleet.Load{Name: name, Sessions: 900, Turns: 3, Every: 10 * time.Millisecond, Gap: 700 * time.Millisecond}
	done := make(chan fleet.Sessions)
	go func() { done <- r.Run(context.Background(), load) }()
	time.Sleep(2 * time.Second)
	began := time.Now()
	begin()
	time.Sleep(lasts)
	end()
	ended := time.Now()
	watched, stop := context.WithCancel(t.Context())
	degraded := make(chan time.Duration)
	go func() { degraded <- r.degraded(watched) }()
	meanwhile := <-done
	stop()
	noneFailed(t, meanwhile)
	r.waitState(t, "ok")
	// On a busy machine an answer may come too late even now.
	until(t, "one home of each session", func() (bool, string) {
		after := r.More(t.Context(), meanwhile, fleet.Load{Turns: 2, Clients: 8})
		noneFailed(t, after)
		apart := after.Disagreeing()
		return len(apart) == 0, fmt.Sprintf("%d have two, the first: %s", len(apart), apart[:min(1, len(apart))])
	})

	calls := r.calls(t)
	paid := calls.Of("", "timeout") - before.Of("", "timeout")
	slow := meanwhile.Took(func(_ int, a fleet.Answer) bool { return a.Took > 45*time.Millisecond })
	apart := meanwhile.Disagreeing()
	t.Logf("%d turns, of which one gateway or the other did without etcd for %v after the end: %d calls timed out, %d found nobody; %d turns took more than 45 ms; p50 %v, p99 %v; %d of %d sessions had turns on "+
		"two replicas", meanwhile.Turns(), <-degraded, paid, calls.Of("", "unreachable")-before.Of("", "unreachable"), len(slow),
		fleet.Quantile(meanwhile.Took(fleet.Any), 0.5), fleet.Quantile(meanwhile.Took(fleet.Any), 0.99), len(apart), len(meanwhile))
	for _, s := range meanwhile {
		if homes := (fleet.Sessions{s}); len(homes.Disagreeing()) > 0 {
			t.Logf("from %.2f s after the beginning, %.2f s after the end on: %s", s.Answers[0].Began.Sub(began).Seconds(),
				s.Answers[0].Began.Sub(ended).Seconds(), homes.Disagreeing()[0])
		}
	}
	if paid >= 50 {
		t.Errorf("%d calls timed out, want less than 50", paid)
	}
	if len(apart) > len(meanwhile)/100 {
		t.Errorf("of %d sessions %d had turns on two replicas, want at most 1%%", len(meanwhile), len(apart))
	}
}

// One of three members is killed, the leader: what was agreed is kept, and no client sees it.
func TestLeaderKilled(t *testing.T) {
	each(t, func(t *testing.T, envoy string) {
		r := start(t, envoy, startEtcd(t, 3), nil)
		r.waitState(t, "ok")
		settled := r.Run(t.Context(), fleet.Load{Name: "settled", Sessions: 300, Turns: 2, Raced: true, Every: 10 * time.Millisecond})
		noneFailed(t, settled)
		// An answer may have come too late for a turn; the next one asks anew.
		until(t, "all homes in etcd", func() (bool, string) {
			settled = r.More(t.Context(), settled, fleet.Load{Turns: 2, Clients: 4})
			homes, err := r.etcd[0].Keys(t.Context(), "/pinwheel/default/s/", "")
			return len(homes) == 300 && len(settled.Disagreeing()) == 0, fmt.Sprint(len(homes), " ", err)
		})
		leader := etcdtest.Leader(t.Context(), r.etcd)
		if leader == nil {
			t.Fatal("nobody leads")
		}
		other := r.etcd[0]
		if other == leader {
			other = r.etcd[1]
		}
		homes, err := other.Keys(t.Context(), "/pinwheel/default/s/", "")
		if err != nil || len(homes) != 300 {
			t.Fatalf("%d homes in etcd, want 300 (%v)", len(homes), err)
		}
		r.outage(t, "led", leader.Kill, func() {}, 0)
		now, err := other.Keys(t.Context(), "/pinwheel/default/s/", "")
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(now, func(key, home string) bool { return homes[key] == "" })
		if !maps.Equal(now, homes) {
			t.Errorf("of %d homes that were agreed before %d are left, or moved", len(homes), len(now))
		}
		more := r.More(t.Context(), settled, fleet.Load{Turns: 2, Clients: 8})
		noneFailed(t, more)
		allAgree(t, "after", more)
		stayed(t, "after", settled, more)
		if err := leader.Again(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// degraded looks at the gateways' states until ctx ends, and returns for how long one of them did without etcd.
func (r *rig) degraded(ctx context.Context) (sum time.Duration) {
	const often = 50 * time.Millisecond
	for ctx.Err() == nil {
		for _, g := range r.Gateways {
			if s, err := g.Status(ctx); err == nil && s.Pools[0].Agreement.State != "ok" {
				sum += often
				break
			}
		}
		time.Sleep(often)
	}
	return sum
}
