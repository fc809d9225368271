package policy_test

import (
	"errors"
	"math"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

var rule = policy.HealthRule{Failures: 3, Cooldown: 10, MaxCooldown: 35}

func TestHealthRuleValidate(t *testing.T) {
	for _, c := range []struct {
		rule policy.HealthRule
		ok   bool
	}{
		{rule, true},
		{policy.HealthRule{}, true},
		{policy.HealthRule{Failures: 0, Cooldown: -1}, true},
		{policy.HealthRule{Failures: 1, Cooldown: 1, MaxCooldown: 1}, true},
		{policy.HealthRule{Failures: 1, Cooldown: 0, MaxCooldown: 1}, false},
		{policy.HealthRule{Failures: 1, Cooldown: -5, MaxCooldown: 1}, false},
		{policy.HealthRule{Failures: 1, Cooldown: 10, MaxCooldown: 9}, false},
		{policy.HealthRule{Failures: math.MaxUint16 - 1, Cooldown: 1, MaxCooldown: 1}, true},
		{policy.HealthRule{Failures: math.MaxUint16, Cooldown: 1, MaxCooldown: 1}, false},
	} {
		if err := c.rule.Validate(); (err == nil) != c.ok || err != nil && !errors.Is(err, policy.ErrHealthRule) {
			t.Errorf("%+v: %v", c.rule, err)
		}
	}
}

// TestHealth tells what happens to the first of two replicas, event by event.
func TestHealth(t *testing.T) {
	type event struct {
		op         string // fail, ok, probe
		began, now int64
		changed    bool
		want       policy.Health
	}
	failing := func(n uint16) policy.Health { return policy.Health{Failures: n} }
	cooling := func(since, until, length int64) policy.Health {
		return policy.Health{Cooldown: length, Since: since, Until: until}
	}
	trial := func(since, until, length int64) policy.Health {
		h := cooling(since, until, length)
		h.Probing = true
		return h
	}
	down := []event{
		{"fail", 1, 1, true, failing(1)}, {"fail", 2, 2, true, failing(2)}, {"fail", 3, 3, true, cooling(3, 13, 10)},
	}
	for _, c := range []struct {
		name   string
		events []event
	}{
		{"a success begins anew", []event{
			{"fail", 1, 1, true, failing(1)}, {"fail", 2, 2, true, failing(2)}, {"ok", 1, 3, true, failing(0)},
			{"ok", 2, 3, false, failing(0)}, {"fail", 1, 4, true, failing(1)},
		}},
		{"what began before the cool-down is ignored", append(down[:3:3],
			event{"fail", 2, 5, false, cooling(3, 13, 10)}, event{"ok", 3, 9, false, cooling(3, 13, 10)},
			event{"fail", 3, 99, false, cooling(3, 13, 10)})},
		{"so are failures before the trial", append(down[:3:3], event{"fail", 12, 14, false, cooling(3, 13, 10)})},
		{"a success before the trial ends it", append(down[:3:3], event{"ok", 4, 9, true, failing(0)})},
		{"no trial before its time", append(down[:3:3], event{"probe", 0, 12, false, cooling(3, 13, 10)})},
		{"one trial at a time", append(down[:3:3],
			event{"probe", 0, 13, true, trial(3, 23, 10)}, event{"probe", 0, 13, false, trial(3, 23, 10)},
			event{"probe", 0, 22, false, trial(3, 23, 10)}, event{"probe", 0, 25, true, trial(3, 35, 10)})},
		{"a trial that succeeds", append(down[:3:3],
			event{"probe", 0, 14, true, trial(3, 24, 10)}, event{"ok", 14, 20, true, failing(0)},
			event{"fail", 21, 21, true, failing(1)})},
		{"a slow trial counts though another began", append(down[:3:3],
			event{"probe", 0, 14, true, trial(3, 24, 10)}, event{"probe", 0, 24, true, trial(3, 34, 10)},
			event{"ok", 14, 30, true, failing(0)})},
		{"failed trials double up to the longest", append(down[:3:3],
			event{"probe", 0, 13, true, trial(3, 23, 10)}, event{"fail", 13, 15, true, cooling(15, 35, 20)},
			event{"fail", 13, 16, false, cooling(15, 35, 20)},
			event{"probe", 0, 35, true, trial(15, 55, 20)}, event{"fail", 35, 36, true, cooling(36, 71, 35)},
			event{"probe", 0, 71, true, trial(36, 106, 35)}, event{"fail", 71, 72, true, cooling(72, 107, 35)},
			event{"probe", 0, 107, true, trial(72, 142, 35)}, event{"ok", 107, 108, true, failing(0)},
			event{"fail", 109, 109, true, failing(1)}, event{"fail", 109, 109, true, failing(2)},
			event{"fail", 109, 109, true, cooling(109, 119, 10)})},
		{"a failure of the time of the trial is a trial's", append(down[:3:3], event{"fail", 13, 14, true, cooling(14, 34, 20)})},
		{"its own failure after the trial's time ran out", append(down[:3:3],
			event{"probe", 0, 13, true, trial(3, 23, 10)}, event{"fail", 13, 90, true, cooling(90, 110, 20)})},
	} {
		r := replicas(0, 0)
		for n, e := range c.events {
			changed := false
			switch e.op {
			case "fail":
				changed = r.Fail(1, e.began, e.now, rule)
			case "ok":
				changed = r.Succeed(1, e.began)
			case "probe":
				changed = r.Probe(0, e.now)
			}
			if changed != e.changed || r.List[0].Health != e.want {
				t.Errorf("%s: event %d: changed %v to %+v, want %+v", c.name, n, changed, r.List[0].Health, e.want)
			}
		}
		if r.List[1].Health != (policy.Health{}) {
			t.Errorf("%s: the other is %+v", c.name, r.List[1].Health)
		}
	}
}

func TestHealthOfNobody(t *testing.T) {
	r := replicas(0, 1)
	r.Apply(members("a"), 0, 0)
	for _, id := range []uint32{0, 2, 9} {
		if r.Fail(id, 1, 1, rule) || r.Succeed(id, 1) {
			t.Errorf("replica %d changed", id)
		}
	}
	if r.Fail(1, 1, 1, policy.HealthRule{}) || r.List[0].Health != (policy.Health{}) {
		t.Error("failures count though cool-downs are off")
	}
}

// TestSuccessAfterPanic: the first success ends the cool-down of all, and one
// failure more is enough for those that it says nothing of.
func TestSuccessAfterPanic(t *testing.T) {
	r := replicas(5, 4, 0)
	for id := uint32(1); id <= 3; id++ {
		for range 3 {
			r.Fail(id, 1, 1, rule)
		}
	}
	if !r.Panicking(10) || r.Panicking(11) {
		t.Fatalf("panicking %v before the time of the trials, %v at it", r.Panicking(10), r.Panicking(11))
	}
	r.Succeed(2, 2)
	for i, c := range r.List {
		if c.Health.Cooling() || c.Joining || c.Health.Failures != map[bool]uint16{true: 0, false: 65534}[i == 1] {
			t.Errorf("%+v", c)
		}
	}
	r.Fail(1, 6, 6, rule)
	r.Fail(2, 6, 6, rule)
	if !r.List[0].Health.Cooling() || r.List[1].Health.Cooling() {
		t.Errorf("%+v", r.List)
	}
	r.Succeed(3, 6)
	if r.List[2].Health != (policy.Health{}) {
		t.Errorf("%+v", r.List[2])
	}
}

// TestSuccessWithOthersWell ends one cool-down only.
func TestSuccessWithOthersWell(t *testing.T) {
	r := replicas(1, 1, 1)
	for range 3 {
		r.Fail(1, 1, 1, rule)
		r.Fail(2, 1, 1, rule)
	}
	r.Succeed(1, 2)
	if r.List[0].Health.Cooling() || !r.List[1].Health.Cooling() {
		t.Errorf("%+v", r.List)
	}
}

// TestReserveBeginsTheTrial: the placement itself marks it, so that of two
// workers whose compare-and-swap races only one tries.
func TestReserveBeginsTheTrial(t *testing.T) {
	r := replicas(0, 0)
	for range 3 {
		r.Fail(1, 0, 0, rule)
	}
	if i := sticky(r, key("s1"), 0); i != 1 {
		t.Fatalf("placed on %d during the cool-down", i)
	}
	q := policy.Query{Key: key("s1"), Now: 10}
	i := policy.StickyLeastLoaded{}.Choose(r, q)
	r.Reserve(i, 10)
	if again := (policy.StickyLeastLoaded{}).Choose(r, q); i != 0 || again != 1 {
		t.Errorf("placed on %d and then on %d", i, again)
	}
}

func TestCondition(t *testing.T) {
	for _, c := range []struct {
		state policy.State
		want  policy.State
	}{
		{policy.Active, policy.Cooling}, {policy.Draining, policy.Cooling},
		{policy.Unhealthy, policy.Unhealthy}, {policy.Removed, policy.Removed},
	} {
		x := policy.Replica{State: c.state}
		if got := x.Condition(); got != c.state {
			t.Errorf("%v and well is %v", c.state, got)
		}
		x.Health.Cooldown = 1
		if got := x.Condition(); got != c.want {
			t.Errorf("%v and failing is %v", c.state, got)
		}
	}
}

// TestJudgeCooling: sessions do not come back to a replica that cools down until
// a trial has ended it; one that drains takes no trial.
func TestJudgeCooling(t *testing.T) {
	for _, c := range []struct {
		name  string
		state policy.State
		now   int64
		alone bool
		want  policy.Reason
	}{
		{"cooling", policy.Active, 9, false, policy.FailoverUnhealthy},
		{"its time is over", policy.Active, 10, false, policy.FailoverUnhealthy},
		{"draining", policy.Draining, 9, false, policy.FailoverUnhealthy},
		{"draining and its time is over", policy.Draining, 10, false, policy.Pinned},
		{"panic", policy.Active, 9, true, policy.Pinned},
	} {
		r := replicas(1, 0)
		r.List[0].State, r.List[0].Health = c.state, policy.Health{Cooldown: 10, Until: 10}
		if c.alone {
			r.List[1].State = policy.Unhealthy
		}
		if got := policy.Judge(policy.Pin{Replica: 1}, r, c.now, 100); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
