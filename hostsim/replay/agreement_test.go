package replay

import (
	"context"
	"reflect"
	"testing"
	"time"
)

const byEtcd = `{"agreement":{"kind":"etcd","username":"pinwheel","password":"p","cluster":"other"}}`

// agreed is a campaign of two gateways with the plugin in each, to which turns come at random.
func agreed(t *testing.T, config string, latency time.Duration, schedule ...Event) Campaign {
	t.Helper()
	c := campaign(talks(20, 12, 100), 4)
	c.Gateways, c.Deal, c.Think, c.ThinkCap, c.Schedule = 2, DealRandom, ThinkRecorded, time.Second, schedule
	wasm := pinwheel(t)
	var etcd *Etcd
	c.NewRouter = func(ctx context.Context, i int, seed uint64, fleet []Member) (Router, error) {
		if i == 0 {
			var err error
			if etcd, err = NewEtcd(latency, schedule); err != nil {
				return nil, err
			}
			etcd.EnableAuth("pinwheel", "p")
		}
		return NewWasmRouter(ctx, WasmConfig{Wasm: wasm, Config: []byte(config), Policy: "sticky_least_loaded", Seed: seed<<8 + uint64(i),
			CacheDir: codeCache(), Etcd: etcd}, fleet)
	}
	return c
}

// Gateways that agree send a session to one replica, whichever of them it comes to; the first turn at each waits for etcd.
func TestGatewaysAgree(t *testing.T) {
	alone := play(t, agreed(t, `{}`, 0))
	if alone.HomesPerSession < 1.5 {
		t.Errorf("%v homes a session without an agreement", alone.HomesPerSession)
	}
	const latency = 40 * time.Millisecond
	r := play(t, agreed(t, byEtcd, latency))
	if r.HomesPerSession != 1 || r.Moves != 0 || r.Errors != 0 {
		t.Errorf("%v homes a session, %d moves, %d errors", r.HomesPerSession, r.Moves, r.Errors)
	}
	if r.Reasons["placed"] != 20 || r.Reasons["pinned"] != 20*11 {
		t.Errorf("reasons %v", r.Reasons)
	}
	for _, s := range r.Slowest {
		for i, u := range s.Turns {
			if waited := millionth(u.Admitted - u.Sent); i == 0 && waited < (DefaultOverhead+latency).Seconds() {
				t.Errorf("the first turn of %s is admitted after %v s", s.Session, waited)
			}
		}
	}
	if again := play(t, agreed(t, byEtcd, latency)); !reflect.DeepEqual(r, again) {
		t.Error("one seed, two results")
	}
}

// While etcd is away sessions are served. A replica joins meanwhile, so that hashes, which agree by themselves, part some of them;
// once etcd is back each has one home, and stays parted where it never is.
func TestAgreementHeals(t *testing.T) {
	const back, healed = 4 * time.Second, 6.
	for _, outage := range []Event{{Kind: EventEtcdDown, For: back}, {Kind: EventEtcdHangs, For: back}, {Kind: EventEtcdHangs}} {
		c := agreed(t, byEtcd, 0, outage, Event{Kind: EventJoin, At: 2 * time.Second})
		c.Ramp = 2500 * time.Millisecond
		r := play(t, c)
		if r.Errors != 0 || r.Turns != 20*12 {
			t.Errorf("%s: %d turns, %d errors", outage, r.Turns, r.Errors)
		}
		seen, parted := 0, 0
		for _, s := range r.Slowest {
			homes := map[int]bool{}
			for _, u := range s.Turns {
				if u.Sent > healed {
					homes[u.Replica] = true
				}
			}
			if seen += len(homes); len(homes) > 1 {
				parted++
			}
		}
		if seen == 0 || (parted > 0) != (outage.For == 0) {
			t.Errorf("%s: %d homes after it, %d sessions have several", outage, seen, parted)
		}
	}
}
