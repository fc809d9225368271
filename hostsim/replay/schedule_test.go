package replay

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

// to names one replica for ever, and keeps what it was told.
type to struct {
	replica  int
	statuses []int
	fleet    []Member
}

func (f *to) Turn(time.Duration, *Turn) (Decision, error) {
	return Decision{Replica: f.replica, Reason: "to"}, nil
}
func (f *to) Done(_ time.Duration, _ Decision, status int) error {
	f.statuses = append(f.statuses, status)
	return nil
}
func (f *to) Finish(time.Duration, string) error { return nil }
func (f *to) Members(_ time.Duration, fleet []Member) error {
	f.fleet = fleet
	return nil
}
func (f *to) Close() error { return nil }

func always(c *Campaign, replica int) *to {
	f := &to{replica: replica}
	c.NewRouter = func(context.Context, int, uint64, []Member) (Router, error) { return f, nil }
	return f
}

// A turn whose replica dies under it is sent again; a router that insists is overruled after three tries.
func TestFail(t *testing.T) {
	c := campaign(talks(1, 1, 160), 2)
	c.Jitter, c.Schedule = -1, []Event{{Kind: EventFail, At: 102 * time.Millisecond}}
	f := always(&c, 0)
	r := play(t, c)
	if want := []int{statusBroken, statusUnavailable, statusUnavailable, statusUnavailable}; !slices.Equal(f.statuses, want) {
		t.Errorf("the router heard %v, want %v", f.statuses, want)
	}
	if r.Retries != 4 || r.Reasons["to"] != 4 || r.Reasons[ReasonGateway] != 1 || r.Errors != 0 {
		t.Errorf("%d retries, %d errors, reasons %v", r.Retries, r.Errors, r.Reasons)
	}
	if got := r.Slowest[0].Turns[0]; got.Replica != 1 || got.Sent != 0 || got.Admitted != .202 {
		t.Errorf("served as %+v", got)
	}
}

// A replica that fails again while it is away comes back at the later of both ends. A client sends again after 1, 2 and 4 s.
func TestFailsWhileAway(t *testing.T) {
	fail := func(at, away time.Duration) Event {
		return Event{Kind: EventFail, At: at * time.Millisecond, For: away * time.Millisecond}
	}
	for _, c := range []struct {
		schedule []Event
		want     float64 // admitted; 0 for never
	}{
		{[]Event{fail(50, 1500)}, 3.2},
		{[]Event{fail(50, 1500), fail(1000, 300)}, 3.2},
		{[]Event{fail(50, 1500), fail(1000, 3000)}, 7.2},
		{[]Event{fail(50, 1500), fail(1000, 3000), fail(1550, 100), fail(2000, 100)}, 7.2},
		{[]Event{fail(50, 1500), fail(1000, 0)}, 0},
		{[]Event{fail(50, 0), fail(1000, 300)}, 0},
	} {
		camp := campaign(talks(1, 1, 160), 1)
		camp.Jitter, camp.Attempts, camp.Schedule = -1, 4, c.schedule
		always(&camp, 0)
		got := 0.
		if r := play(t, camp); r.Errors == 0 {
			got = r.Slowest[0].Turns[0].Admitted
		}
		if got != c.want {
			t.Errorf("%v: admitted at %v, want %v", c.schedule, got, c.want)
		}
	}
}

// Of a step that a crash ends, the time until then counts, in the pool's use as well.
func TestFailEndsBusy(t *testing.T) {
	c := campaign(talks(1, 1, 160), 2)
	c.Engine.Step, c.Engine.Blocks = steady(8*time.Second), 20
	c.Jitter, c.Schedule = -1, []Event{{Kind: EventFail, At: 2100 * time.Millisecond}}
	always(&c, 0)
	r := play(t, c)
	if got := r.Replicas[0].Busy; got != 2 {
		t.Errorf("busy for %v s, want 2", got)
	}
	// 10 blocks of a prompt of 160 tokens are half of the pool; the steps after the first need one more.
	first, later := 2+8.0016, 3*8.
	if want := (first*.5 + later*.55) / (first + later); math.Abs(r.KVUseMean-want) > 1e-9 {
		t.Errorf("the pool's use is %v, want %v", r.KVUseMean, want)
	}
}

// A replica that comes back has forgotten everything.
func TestComesBackEmpty(t *testing.T) {
	c := campaign(talks(1, 2, 160), 1)
	c.Jitter, c.Think = -1, ThinkRecorded // 0.5 s
	always(&c, 0)
	if r := play(t, c); r.HitRate == 0 {
		t.Error("nothing was cached without a failure")
	}
	c.Schedule = []Event{{Kind: EventFail, At: 200 * time.Millisecond, For: 100 * time.Millisecond}}
	if r := play(t, c); r.HitRate != 0 || r.Errors != 0 || r.Retries != 0 {
		t.Errorf("hit rate %v, %d errors, %d retries after a failure between two turns", r.HitRate, r.Errors, r.Retries)
	}
}

// With nobody there a client sends again after 1, 2 and 4 s, and then no more.
func TestNobodyThere(t *testing.T) {
	c := campaign(talks(1, 1, 160), 1)
	c.Jitter, c.Attempts, c.Schedule = -1, 4, []Event{{Kind: EventFail, At: 0}}
	always(&c, -1)
	r := play(t, c)
	if r.Errors != 1 || r.Retries != 3 || r.Wall != 7 || r.Turns != 1 || r.Sessions != 1 {
		t.Errorf("%d errors, %d retries, wall %v, %d turns", r.Errors, r.Retries, r.Wall, r.Turns)
	}
}

// An update ends the step, holds everything for its time and empties the caches.
func TestUpdate(t *testing.T) {
	c := campaign(talks(1, 2, 160), 1)
	c.Jitter = -1
	always(&c, 0)
	before := play(t, c).Slowest[0].Turns
	c.Schedule = []Event{{Kind: EventUpdate, At: 103 * time.Millisecond, For: 3 * time.Second}}
	after := play(t, c).Slowest[0].Turns
	if before[0].First != after[0].First {
		t.Errorf("the step under way ends at %v, not %v", after[0].First, before[0].First)
	}
	if d := after[0].End - .103; d < 3 {
		t.Errorf("the next step begins before the update has ended: the turn takes %v from its begin", d)
	}
	if before[1].Cached != 160 || after[1].Cached != 0 {
		t.Errorf("cached %d without and %d with an update", before[1].Cached, after[1].Cached)
	}
}

// Routers learn of joins, drains and removals, and gateways send nothing to who is gone.
func TestMembership(t *testing.T) {
	c := campaign(talks(4, 20, 16), 2)
	c.Schedule = []Event{{Kind: EventJoin, At: time.Second}, {Kind: EventDrain, Replica: 1, At: time.Second}, {Kind: EventUndrain, Replica: 1, At: 1200 * time.Millisecond},
		{Kind: EventDrain, Replica: 2, At: 1200 * time.Millisecond}, {Kind: EventRemove, Replica: 0, At: time.Second}}
	f := always(&c, 0)
	r := play(t, c)
	if len(f.fleet) != 3 || !f.fleet[0].Gone || f.fleet[1].Draining || !f.fleet[2].Draining || f.fleet[2].Address != "10.0.0.3:8000" {
		t.Errorf("the router knows %+v", f.fleet)
	}
	for _, s := range r.Slowest {
		for _, u := range s.Turns {
			if u.Replica == 0 && u.Sent > 1 {
				t.Errorf("sent to the removed replica: %+v", u)
			}
		}
	}
	if r.Moves == 0 || r.Replicas[1].Requests == 0 {
		t.Errorf("%d moves, replicas %+v", r.Moves, r.Replicas)
	}
}

// A gateway that chooses by itself takes a replica that drains if there is no other.
func TestDrainingComesLast(t *testing.T) {
	for _, how := range []Balancer{BalancerLeastRequests, BalancerRoundRobin} {
		c := campaign(talks(8, 3, 16), 3)
		c.Balancer = how
		c.Schedule = []Event{{Kind: EventDrain, Replica: 0}, {Kind: EventDrain, Replica: 1}}
		always(&c, -1)
		if r := play(t, c); r.Replicas[0].Requests+r.Replicas[1].Requests > 0 {
			t.Errorf("%s: those that drain have %d and %d requests", how, r.Replicas[0].Requests, r.Replicas[1].Requests)
		}
		c.Schedule = append(c.Schedule, Event{Kind: EventDrain, Replica: 2})
		always(&c, -1)
		if r := play(t, c); r.Errors > 0 || r.Replicas[0].Requests == 0 {
			t.Errorf("%s: all drain: %d errors, %d requests", how, r.Errors, r.Replicas[0].Requests)
		}
	}
}

// Updates that come every so often do not keep a campaign from its end.
func TestEvery(t *testing.T) {
	c := campaign(talks(2, 10, 16), 1)
	without := play(t, c).Wall
	c.Schedule = []Event{{Kind: EventUpdate, At: 300 * time.Millisecond, Every: 300 * time.Millisecond, For: 100 * time.Millisecond}}
	if with := play(t, c).Wall; with <= without || with > 2*without {
		t.Errorf("wall %v with updates, %v without", with, without)
	}
}

// A replica that is removed while a turn is on its way to it does not get it.
func TestRemovedOnTheWay(t *testing.T) {
	c := campaign(talks(1, 1, 160), 2)
	c.Jitter, c.Schedule = -1, []Event{{Kind: EventRemove, At: 50 * time.Millisecond}}
	always(&c, 0)
	if r := play(t, c); r.Slowest[0].Turns[0].Replica != 1 || r.Replicas[0].Requests != 0 || r.Retries == 0 {
		t.Errorf("served as %+v, %d retries", r.Slowest[0].Turns[0], r.Retries)
	}
}

// The step that a crash broke off does not end one that began after it.
func TestBrokenStep(t *testing.T) {
	c := campaign(talks(1, 1, 160), 1)
	c.Engine.Step = steady(3 * time.Second)
	c.Jitter, c.Schedule = -1, []Event{{Kind: EventFail, At: 150 * time.Millisecond, For: 10 * time.Millisecond}}
	always(&c, 0)
	// It is sent again after a second, and its first step takes all of its 3 s.
	r := play(t, c)
	if got := r.Slowest[0].Turns[0]; got.Admitted != 1.25 || got.First != 4.2516 || r.Wall != got.End {
		t.Errorf("served as %+v, wall %v", got, r.Wall)
	}
}

// A client waits for a replica twice as long each time, but no longer than a minute: it comes at 0, 1, 3, 7, 15, 31, 63, 123,
// 183 and 243 s.
func TestLongestWait(t *testing.T) {
	c := campaign(talks(1, 1, 160), 1)
	c.Jitter, c.Schedule = -1, []Event{{Kind: EventFail, For: 200 * time.Second}}
	always(&c, 0)
	if r := play(t, c); r.Errors != 0 || r.Slowest[0].Turns[0].Admitted != 243.1 {
		t.Errorf("%d errors, served as %+v", r.Errors, r.Slowest[0].Turns)
	}
}

// A turn that comes during an update waits for its end.
func TestComesDuringUpdate(t *testing.T) {
	c := campaign(talks(1, 1, 160), 1)
	c.Jitter, c.Schedule = -1, []Event{{Kind: EventUpdate, At: 50 * time.Millisecond, For: time.Second}}
	always(&c, 0)
	if got := play(t, c).Slowest[0].Turns[0]; got.Admitted != 1.05 {
		t.Errorf("served as %+v", got)
	}
}

// late is a router with timers of its own and a last word.
type late struct {
	to
	t    *testing.T
	now  time.Duration
	last error
}

func (l *late) Advance(now time.Duration) { l.now = now }
func (l *late) Turn(now time.Duration, _ *Turn) (Decision, error) {
	if l.now != now {
		l.t.Errorf("asked at %v, advanced to %v", now, l.now)
	}
	return Decision{}, nil
}
func (l *late) Done(now time.Duration, _ Decision, _ int) error {
	if l.now != now {
		l.t.Errorf("told at %v, advanced to %v", now, l.now)
	}
	return nil
}
func (l *late) Close() error { return l.last }

// A router's timers run before it is asked, and what it says at its end is heard.
func TestRouterWithTimers(t *testing.T) {
	c := campaign(talks(1, 2, 160), 1)
	c.Think = ThinkRecorded
	l := &late{t: t}
	c.NewRouter = func(context.Context, int, uint64, []Member) (Router, error) { return l, nil }
	if _, err := Run(t.Context(), c); err != nil || l.now == 0 {
		t.Errorf("at the end at %v: %v", l.now, err)
	}
	l.last = errors.New("crashed")
	if _, err := Run(t.Context(), c); !errors.Is(err, l.last) {
		t.Errorf("%v, want %v", err, l.last)
	}
}
