package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// modelFleet is a fleet of known behaviour: work is shared by the replicas, and too many sessions a replica cost cache.
type modelFleet struct {
	sessions, room int // sessions that a replica's cache has room for
	played         map[fleetPoint]int
}

func (m *modelFleet) run(_ context.Context, p fleetPoint) (*fleetOutcome, error) {
	m.played[p]++
	open := m.sessions
	if p.Cap > 0 {
		open = min(open, p.Cap)
	}
	hit := 0.95
	if each := float64(open) / float64(p.Replicas); each > float64(m.room) {
		hit *= float64(m.room) / each
	}
	// A session's own time bounds how quick few at a time can be.
	t95 := max(6000*(1.05-hit)/float64(p.Replicas), 60*float64(m.sessions)/float64(open))
	return &fleetOutcome{fleetPoint: p, T95: []float64{t95, t95 * 1.05}, HitRate: []float64{hit, hit - .01}}, nil
}

// The search finds what trying everything finds, plays nothing twice, and tries far fewer points.
func TestAdvisorFindsTheSmallestFleet(t *testing.T) {
	for _, c := range []struct {
		goal fleetGoal
		max  int
	}{
		{fleetGoal{t95: 300 * time.Second}, 64}, {fleetGoal{t95: 100 * time.Second}, 64}, {fleetGoal{t95: 80 * time.Second}, 50},
		{fleetGoal{hit: .9}, 64}, {fleetGoal{hit: .3}, 64}, {fleetGoal{t95: 200 * time.Second, hit: .9}, 64}, {fleetGoal{t95: time.Hour}, 1},
		{fleetGoal{t95: time.Second}, 64}, {fleetGoal{hit: .99}, 7}, {fleetGoal{t95: 70 * time.Second, hit: .9}, 33},
	} {
		m := &modelFleet{sessions: 200, room: 6, played: map[fleetPoint]int{}}
		a := &advisor{goal: c.goal, maxReplicas: c.max, sessions: m.sessions, run: m.run}
		got, err := a.search(context.Background())
		points := len(m.played)
		for p, n := range m.played {
			if n > 1 {
				t.Errorf("%v: %v was played %d times", c.goal, p, n)
			}
		}
		want := 0
		for n := 1; n <= c.max && want == 0; n++ {
			for _, limit := range a.caps(n) {
				o, _ := m.run(context.Background(), fleetPoint{n, limit})
				if c.goal.met(o) {
					want = n
				}
			}
		}
		switch {
		case want == 0 && !errors.Is(err, errUnreachable), want > 0 && (err != nil || got.Replicas != want || !got.Meets):
			t.Errorf("%v: %+v, %v, want %d replicas", c.goal, got, err, want)
		case points > 80:
			t.Errorf("%v: %d points", c.goal, points)
		case want == 0 && a.nearest() == nil:
			t.Errorf("%v: nothing is near", c.goal)
		}
		if want == 0 {
			continue
		}
		uncapped, _ := m.run(context.Background(), fleetPoint{want, 0})
		if c.goal.met(uncapped) != (got.Cap == 0) {
			t.Errorf("%v: %v, and without a cap it is %t that the goal is met", c.goal, got.fleetPoint, c.goal.met(uncapped))
		}
		for _, limit := range a.caps(want) {
			if got.Cap == 0 {
				break
			}
			if o, _ := m.run(context.Background(), fleetPoint{want, limit}); c.goal.met(o) && median(o.T95) < median(got.T95) {
				t.Errorf("%v: cap %d is quicker than %v", c.goal, limit, got.fleetPoint)
			}
		}
	}
}

// A cap that is quicker is not advised where none is needed; where all at once miss the goal, the quickest cap is.
func TestAdvisorPrefersNoCap(t *testing.T) {
	for limit, want := range map[time.Duration]int{100 * time.Second: 0, 80 * time.Second: 2} {
		a := &advisor{goal: fleetGoal{t95: limit}, maxReplicas: 1, sessions: 8, run: func(_ context.Context, p fleetPoint) (*fleetOutcome, error) {
			t95 := map[int]float64{0: 90, 1: 85, 2: 50, 4: 70}[p.Cap]
			return &fleetOutcome{fleetPoint: p, T95: []float64{t95}, HitRate: []float64{1}}, nil
		}}
		if got, err := a.search(context.Background()); err != nil || got.Cap != want {
			t.Errorf("%v: %+v, %v, want a cap of %d", limit, got, err, want)
		}
	}
}

// Advice is a command line that can be typed: without a cap it names none.
func TestAdviceArgs(t *testing.T) {
	for p, want := range map[fleetPoint]string{{3, 0}: "--replicas 3", {11, 112}: "--replicas 11 --concurrency 112"} {
		if got := p.args(); got != want {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
	}
	for s, want := range map[float64]string{92.35: "1m32s", 711.2: "11m51s", 42.4: "42s", 0.126: "130ms"} {
		if got := seconds(s); got != want {
			t.Errorf("%v: %s, want %s", s, got, want)
		}
	}
}

// One seed that misses the goal is enough to miss it.
func TestGoalHoldsOnEverySeed(t *testing.T) {
	o := &fleetOutcome{T95: []float64{10, 20}, HitRate: []float64{.8, .9}}
	for _, c := range []struct {
		goal fleetGoal
		want bool
	}{
		{fleetGoal{t95: 20 * time.Second}, true}, {fleetGoal{t95: 19 * time.Second}, false}, {fleetGoal{hit: .8}, true},
		{fleetGoal{hit: .81}, false}, {fleetGoal{t95: 20 * time.Second, hit: .81}, false}, {fleetGoal{t95: 20 * time.Second, hit: .8}, true},
	} {
		if got := c.goal.met(o); got != c.want {
			t.Errorf("%v: %v", c.goal, got)
		}
	}
}

func TestAdvisorEndsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	a := &advisor{goal: fleetGoal{hit: .5}, maxReplicas: 8, sessions: 9,
		run: func(context.Context, fleetPoint) (*fleetOutcome, error) { return nil, broken }}
	if _, err := a.search(context.Background()); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// A real search: what it advises meets the goal through the plugin, and one replica less does not.
func TestReplayAdvises(t *testing.T) {
	code, stdout, stderr := command(smallReplay("--advise", "--goal-hit", "0.85", "--policy", "sticky_least_loaded", "--pool-tokens", "200000", "--json", "-")...)
	var a advice
	if err := json.Unmarshal([]byte(stdout), &a); code != 0 || err != nil || a.Advice == nil {
		t.Fatalf("exit %d, %v, %s, %s", code, err, stdout, stderr)
	}
	if !a.Advice.Meets || a.Advice.Through != throughWasm || len(a.Advice.HitRate) != 2 {
		t.Errorf("%+v", a.Advice)
	}
	for _, o := range a.Tried {
		if o.Replicas < a.Advice.Replicas && o.Meets {
			t.Errorf("%+v meets the goal, too", o)
		}
	}
	code, stdout, _ = command(smallReplay("--advise", "--goal-hit", "0.85", "--policy", "sticky_least_loaded", "--pool-tokens", "200000")...)
	if code != 0 || !strings.Contains(stdout, "\nAdvice: "+a.Advice.String()) || !strings.Contains(stdout, "replicas") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// Where nothing is enough the error says what came nearest.
func TestReplayAdviseUnreachable(t *testing.T) {
	code, stdout, stderr := command(smallReplay("--advise", "--goal-t95", "1ms", "--max-replicas", "2")...)
	if code != exitFailed || !strings.Contains(stderr, "is met by no fleet of up to 2 replicas; the nearest is 2 replicas") ||
		!strings.Contains(stdout, "missed") || !strings.Contains(stdout, "sticky_least_loaded (by default; --policy names another)") {
		t.Errorf("exit %d, %s, %s", code, stdout, stderr)
	}
}

// Advice that no plugin has part in needs none.
func TestReplayAdvisesWithoutPlugin(t *testing.T) {
	for _, args := range [][]string{{"--in-process"}, {"--policy", "session_hash"}} {
		args = append(args, "--wasm", "none.wasm", "--advise", "--goal-hit", "0.1", "--seeds", "1")
		if code, stdout, stderr := command(smallReplay(args...)...); code != 0 || !strings.Contains(stdout, "\nAdvice: ") {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
}
