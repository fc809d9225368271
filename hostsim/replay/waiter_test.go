package replay

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// slow takes its time for each decision. What it does by itself it notes in a diary that all gateways share.
type slow struct {
	to
	after time.Duration
	now   time.Duration
	open  []slowTurn
	ticks time.Duration
	diary *[]time.Duration
}

type slowTurn struct {
	at time.Duration
	d  Decision
}

func (s *slow) Turn(now time.Duration, _ *Turn) (Decision, error) {
	s.Advance(now)
	d := Decision{Replica: s.replica, Reason: "slow", Ticket: new(int)}
	if s.after == 0 {
		return d, nil
	}
	s.open = append(s.open, slowTurn{now + s.after, d})
	return Decision{Open: true, Replica: 99, Ticket: d.Ticket}, nil
}

func (s *slow) Advance(now time.Duration) {
	for ; s.now < now && s.ticks > 0; *s.diary = append(*s.diary, s.now) {
		s.now += min(s.ticks-s.now%s.ticks, now-s.now)
	}
	s.now = now
}

func (s *slow) Due() (at time.Duration, ok bool) {
	if s.ticks > 0 {
		at, ok = s.now+s.ticks-s.now%s.ticks, true
	}
	for _, o := range s.open {
		if !ok || o.at < at {
			at, ok = o.at, true
		}
	}
	return at, ok
}

func (s *slow) Made(now time.Duration) (made []Decision, err error) {
	s.open = slices.DeleteFunc(s.open, func(o slowTurn) bool {
		if o.at > now {
			return false
		}
		made = append(made, o.d)
		return true
	})
	return made, nil
}

func waiting(c *Campaign, routers ...*slow) {
	c.Gateways = len(routers)
	c.NewRouter = func(_ context.Context, i int, _ uint64, _ []Member) (Router, error) { return routers[i], nil }
}

// A turn waits for its decision, and its time to the first token has the wait in it.
func TestTurnWaits(t *testing.T) {
	c := campaign(talks(1, 2, 160), 2)
	c.Jitter = -1
	waiting(&c, &slow{to: to{replica: 1}})
	at := play(t, c)
	router := &slow{to: to{replica: 1}, after: 30 * time.Millisecond}
	waiting(&c, router)
	waited := play(t, c)
	for i, u := range waited.Slowest[0].Turns {
		before := at.Slowest[0].Turns[i]
		if got, want := millionth(u.First-u.Sent), millionth(before.First-before.Sent+.03); u.Replica != 1 || got != want {
			t.Errorf("turn %d: the first token after %v s on replica %d, want %v", i, got, u.Replica, want)
		}
	}
	if waited.Reasons["slow"] != 2 || !slices.Equal(router.statuses, []int{200, 200}) {
		t.Errorf("reasons %v, statuses %v", waited.Reasons, router.statuses)
	}
}

// The replica that is decided on may be gone by then: the router is asked again, and overruled in the end.
func TestReplicaFailsMeanwhile(t *testing.T) {
	c := campaign(talks(1, 1, 160), 2)
	c.Jitter, c.Schedule = -1, []Event{{Kind: EventFail, At: 10 * time.Millisecond}}
	router := &slow{after: 30 * time.Millisecond}
	waiting(&c, router)
	r := play(t, c)
	if u := r.Slowest[0].Turns[0]; u.Replica != 1 || u.Admitted != .19 || r.Reasons["slow"] != 3 || r.Reasons[ReasonGateway] != 1 {
		t.Errorf("%+v, reasons %v", u, r.Reasons)
	}
}

// What gateways do by themselves comes in the order of time, whichever of them turns come to.
func TestWaitersAreWokenInOrder(t *testing.T) {
	var diaries [2][]time.Duration
	var results [2]*SeedResult
	for i := range diaries {
		c := campaign(talks(6, 5, 100), 2)
		c.Deal = DealRandom
		waiting(&c, &slow{after: 7 * time.Millisecond, ticks: 100 * time.Millisecond, diary: &diaries[i]},
			&slow{after: 9 * time.Millisecond, ticks: 130 * time.Millisecond, diary: &diaries[i]})
		results[i] = play(t, c)
	}
	if len(diaries[0]) < 20 || !slices.IsSorted(diaries[0]) {
		t.Errorf("out of order: %v", diaries[0])
	}
	if !reflect.DeepEqual(results[0], results[1]) || !slices.Equal(diaries[0], diaries[1]) {
		t.Error("one seed, two results")
	}
}

// opens leaves turns open without being a Waiter.
type opens struct{ to }

func (*opens) Turn(time.Duration, *Turn) (Decision, error) { return Decision{Open: true}, nil }

func TestOnlyAWaiterLeavesTurnsOpen(t *testing.T) {
	c := campaign(talks(1, 1, 160), 1)
	c.NewRouter = func(context.Context, int, uint64, []Member) (Router, error) { return &opens{}, nil }
	if _, err := Run(context.Background(), c); err == nil || !strings.Contains(err.Error(), "leaves a turn open") {
		t.Error(err)
	}
}
