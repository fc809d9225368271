package plugin

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// proof is a race of a few workers that is run under every interleaving of their
// accesses to what they share.
type proof struct {
	*gateway
	homes   map[int]string // what the turns of the current schedule were told, by worker
	reasons map[int]string
	// clock moves without running what falls due.
	clock *hostsim.VirtualClock
	// before, if not nil, runs ahead of each schedule.
	before func()
}

func newProof(t *testing.T, workers int, config string) *proof {
	t.Helper()
	clock := hostsim.NewVirtualClock()
	p := &proof{gateway: startWith(t, hosttest.Options{Workers: workers, Adjust: func(c *hostsim.Config) {
		c.Clock, c.LogLevel = clock, hostsim.LogWarn
	}}, config), clock: clock}
	p.Advance(5 * tick) // the main thread leads, the record is there
	return p
}

// The functions that race.

func (p *proof) turns(id string) func(*hostsim.Worker) {
	return func(w *hostsim.Worker) {
		r := p.on(w.Index(), turnOf(id))
		p.homes[w.Index()], p.reasons[w.Index()] = r.replica, r.reason
	}
}

func (p *proof) releases(id string) func(*hostsim.Worker) {
	return func(w *hostsim.Worker) {
		if r := p.on(w.Index(), hosttest.Request{Method: "POST", Path: "/finish_session?session_id=" + id}); r.Status != 200 {
			p.t.Errorf("release: %d", r.Status)
		}
	}
}

func (p *proof) orders(order string) func(*hostsim.Worker) {
	return func(w *hostsim.Worker) {
		r := p.on(w.Index(), hosttest.Request{Method: "POST", Path: "/pinwheel/" + order, Headers: hostsim.Headers{right}})
		if r.Status != 200 {
			p.t.Errorf("%s: %d %s", order, r.Status, r.ResponseBody)
		}
	}
}

func ticks(w *hostsim.Worker) { w.RunDue() }

// holds runs the scenario under every interleaving, and fails with the first after
// which the counts are not those of the pins, a session has two, a count was
// clamped, or check finds fault.
func (p *proof) holds(sc hostsim.Scenario, check func(played hostsim.Played, pins map[string]string) error) {
	p.t.Helper()
	began := time.Now()
	done, err := p.Explore(hostsim.Exploration{
		Scenario: sc,
		Before: func() {
			p.homes, p.reasons = map[int]string{}, map[int]string{}
			if p.before != nil {
				p.before()
			}
		},
		Check: func(played hostsim.Played) error {
			pins, err := p.pins()
			if err == nil {
				err = check(played, pins)
			}
			if err == nil && p.t.Failed() {
				err = errors.New("the test has failed in this schedule")
			}
			return err
		},
	})
	if err != nil {
		p.t.Fatalf("after %v: %v", done, err)
	}
	if done.Schedules < 2 {
		p.t.Errorf("%v: nothing raced", done)
	}
	p.t.Logf("%v in %v", done, time.Since(began).Round(time.Millisecond))
}

// pins returns the replica of each pin, by the session's hash, or what is wrong
// with them.
func (p *proof) pins() (map[string]string, error) {
	r := p.record("default")
	pins, open := map[string]string{}, map[uint32]uint32{}
	for _, key := range p.SharedData().Keys() {
		if !strings.HasPrefix(key, keyRoot+"default/s/") {
			continue
		}
		value, _, _ := p.SharedData().Get(key)
		for sh, i := shard(value), 0; i < sh.len(); i++ {
			id, at := fmt.Sprint(sh.hash(i)), r.Index(sh.pin(i).Replica)
			if _, twice := pins[id]; twice || at < 0 {
				return nil, fmt.Errorf("the pin of %s is there twice, or on a replica that is not: %d", id, sh.pin(i).Replica)
			}
			pins[id] = r.List[at].Address
			open[sh.pin(i).Replica]++
		}
	}
	for _, c := range r.List {
		if c.Open != open[c.ID] {
			return nil, fmt.Errorf("%s counts %d open sessions, %d are pinned there", c.Address, c.Open, open[c.ID])
		}
	}
	return pins, nil
}

// only returns the replica of the only pin.
func only(pins map[string]string) string {
	for _, home := range pins {
		if len(pins) == 1 {
			return home
		}
	}
	return fmt.Sprintf("no single pin: %v", pins)
}

func workers(fns ...func(*hostsim.Worker)) hostsim.Scenario { return hostsim.Scenario{Workers: fns} }

// smallTable has a single shard, in which all sessions meet and which each tick of
// the leader sweeps.
const smallTable = `,"session":{"max_sessions":32,"idle_timeout":"1m"}`

func TestProofFirstTurnsOfOneSession(t *testing.T) {
	p := newProof(t, 2, threeReplicas+smallTable)
	p.holds(workers(p.turns("s"), p.turns("s")), func(_ hostsim.Played, pins map[string]string) error {
		if home := only(pins); p.homes[0] != home || p.homes[1] != home {
			return fmt.Errorf("sent to %v; pins %v", p.homes, pins)
		}
		return nil
	})
}

// The release comes before the pin, between the turns or after both.
func TestProofFirstTurnsAndRelease(t *testing.T) {
	p := newProof(t, 3, threeReplicas+smallTable)
	p.holds(workers(p.turns("s"), p.turns("s"), p.releases("s")), func(_ hostsim.Played, pins map[string]string) error {
		if home := only(pins); len(pins) > 0 && p.homes[0] != home && p.homes[1] != home {
			return fmt.Errorf("sent to %v; pins %v", p.homes, pins)
		}
		return nil
	})
}

func TestProofFirstTurnsOfTwoSessions(t *testing.T) {
	for _, others := range []int{0, 1, 2} { // even, and one replica behind
		p := newProof(t, 2, threeReplicas+smallTable)
		for i := range others {
			p.turn(fmt.Sprint("before", i))
		}
		p.holds(workers(p.turns("a"), p.turns("b")), func(_ hostsim.Played, pins map[string]string) error {
			for _, c := range p.record("default").List {
				if most := (others + 2 + 2) / 3; int(c.Open) > most {
					return fmt.Errorf("%s has %d of %d sessions", c.Address, c.Open, others+2)
				}
			}
			if others == 0 && p.homes[0] == p.homes[1] {
				return fmt.Errorf("both on %s", p.homes[0])
			}
			return nil
		})
	}
}

// Of two sessions that meet at the last free place one gets it.
func TestProofFullTable(t *testing.T) {
	p := newProof(t, 2, threeReplicas+`,"session":{"max_sessions":1}`)
	p.holds(workers(p.turns("a"), p.turns("b")), func(_ hostsim.Played, pins map[string]string) error {
		reasons := []string{p.reasons[0], p.reasons[1]}
		if slices.Sort(reasons); len(pins) != 1 || reasons[0] != "placed" || reasons[1] != "table_full" {
			return fmt.Errorf("%v, pins %v", reasons, pins)
		}
		return nil
	})
}

func TestProofFirstTurnAndRelease(t *testing.T) {
	p := newProof(t, 2, threeReplicas+smallTable)
	p.holds(workers(p.turns("s"), p.releases("s")), func(_ hostsim.Played, pins map[string]string) error {
		if p.homes[0] == "" || len(pins) > 0 && only(pins) != p.homes[0] {
			return fmt.Errorf("sent to %s, pins %v", p.homes[0], pins)
		}
		return nil
	})
}

// A session that is released twice at once is taken off its replica once.
func TestProofTwoReleases(t *testing.T) {
	p := newProof(t, 2, threeReplicas+smallTable)
	p.turn("s")
	p.turn("other")
	p.holds(workers(p.releases("s"), p.releases("s")), func(_ hostsim.Played, pins map[string]string) error {
		p.Advance(2 * tick)
		if only(pins); len(pins) != 1 || p.Metric("pinwheel_released_total.pool.default") != 1 || p.errors(faultCount) != 0 {
			return fmt.Errorf("pins %v, %d released, %d counts clamped", pins, p.Metric("pinwheel_released_total.pool.default"), p.errors(faultCount))
		}
		return nil
	})
}

// The turn comes before the release, and finds its pin, or after it, and gets a new
// one.
func TestProofLaterTurnAndRelease(t *testing.T) {
	for _, idle := range []time.Duration{0, 50 * time.Second} { // such a turn only reads its pin, or renews it
		p := newProof(t, 2, threeReplicas+smallTable)
		home := p.turn("s").replica
		p.clock.Advance(idle)
		p.holds(workers(p.turns("s"), p.releases("s")), func(_ hostsim.Played, pins map[string]string) error {
			switch r := p.reasons[0]; {
			case r == "pinned" && p.homes[0] == home && len(pins) == 0:
			case r == "placed" && only(pins) == p.homes[0]:
			default:
				return fmt.Errorf("was on %s, %s on %s, pins %v", home, r, p.homes[0], pins)
			}
			return nil
		})
	}
}

// wroteRecord returns the step at which the worker first changed the pool's record.
func wroteRecord(played hostsim.Played, worker int) int {
	return slices.IndexFunc(played.Accesses, func(a hostsim.Access) bool {
		return a.Worker == worker && a.Kind == hostsim.AccessWrite && a.On == "data "+keyRoot+"default/replicas" && a.Status == hostsim.StatusOK
	})
}

// From the moment of the drain on nothing new is placed there.
func TestProofDrainAndFirstTurn(t *testing.T) {
	p := newProof(t, 2, twoReplicas+smallTable+withAdmin)
	first := p.turn("other").replica
	second := map[string]string{"10.0.0.1:8000": "10.0.0.2:8000", "10.0.0.2:8000": "10.0.0.1:8000"}[first]
	p.holds(workers(p.turns("s"), p.orders("drain?replica="+second)), func(played hostsim.Played, pins map[string]string) error {
		want := second
		if wroteRecord(played, 1) < wroteRecord(played, 0) {
			want = first
		}
		if len(pins) != 2 || p.reasons[0] != "placed" || p.homes[0] != want || !slices.Contains(slices.Collect(maps.Values(pins)), want) {
			return fmt.Errorf("%s on %s, want %s; pins %v", p.reasons[0], p.homes[0], want, pins)
		}
		for _, c := range p.record("default").List {
			if c.Drained != (c.Address == second) {
				return fmt.Errorf("%s: drained %v", c.Address, c.Drained)
			}
		}
		return nil
	})
}

// A session whose time is over is found by its turn or by the sweep of the main
// thread, not by both.
func TestProofSweepAndTurn(t *testing.T) {
	p := newProof(t, 2, threeReplicas+smallTable)
	p.turn("s")
	p.clock.Advance(2 * time.Minute)
	sc := workers(p.turns("s"))
	sc.Main = ticks
	reasons := map[string]bool{}
	p.holds(sc, func(_ hostsim.Played, pins map[string]string) error {
		reason := p.reasons[0]
		reasons[reason] = true
		p.Advance(2 * tick)
		if n := p.Metric("pinwheel_expired_total.pool.default"); only(pins) != p.homes[0] || n != 1 || reason != "expired" && reason != "placed" {
			return fmt.Errorf("%s on %s, pins %v, %d counted as expired", reason, p.homes[0], pins, n)
		}
		return nil
	})
	if !reasons["expired"] || !reasons["placed"] {
		t.Errorf("the sweep and the turn never met: %v", reasons)
	}
}
