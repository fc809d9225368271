package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// fleetPoint is a fleet that may meet a goal: a number of replicas, and how many sessions they have at once, 0 for all.
type fleetPoint struct {
	Replicas int `json:"replicas"`
	Cap      int `json:"concurrency"`
}

// fleetOutcome is what such a fleet showed, by seed.
type fleetOutcome struct {
	fleetPoint
	Through string    `json:"through"`
	T95     []float64 `json:"t95_s"`
	HitRate []float64 `json:"hit_rate"`
	Meets   bool      `json:"meets"`
}

// fleetGoal is what is asked of a fleet on every seed; zero asks nothing.
type fleetGoal struct {
	t95 time.Duration
	hit float64
}

func (g fleetGoal) met(o *fleetOutcome) bool {
	slow := func(s float64) bool { return g.t95 > 0 && s > g.t95.Seconds() }
	cold := func(rate float64) bool { return g.hit > 0 && rate < g.hit }
	return !slices.ContainsFunc(o.T95, slow) && !slices.ContainsFunc(o.HitRate, cold)
}

func (g fleetGoal) String() string {
	switch {
	case g.t95 > 0 && g.hit > 0:
		return fmt.Sprintf("t95 of %v and a hit rate of %.4g", g.t95, g.hit)
	case g.t95 > 0:
		return fmt.Sprintf("t95 of %v", g.t95)
	}
	return fmt.Sprintf("hit rate of %.4g", g.hit)
}

// advisor searches the smallest fleet that meets a goal. It takes for granted that more replicas do not do worse.
type advisor struct {
	goal        fleetGoal
	maxReplicas int
	sessions    int
	// fixedCap is the only one to try, unless 0.
	fixedCap int
	// run plays a point on all seeds.
	run func(ctx context.Context, p fleetPoint) (*fleetOutcome, error)

	tried []*fleetOutcome
}

// errUnreachable means that no fleet within the bounds meets the goal.
var errUnreachable = errors.New("replay: the goal is out of reach")

// search returns the best outcome of the smallest fleet that meets the goal: doubling finds one, halving the smallest. Each
// point is played once. Errors: errUnreachable, those of run.
func (a *advisor) search(ctx context.Context) (*fleetOutcome, error) {
	low, high := 0, 1 // low does not meet the goal, high may
	for {
		met, err := a.meets(ctx, high)
		if err != nil {
			return nil, err
		}
		if met != nil {
			break
		}
		if high == a.maxReplicas {
			return nil, errUnreachable
		}
		low, high = high, min(2*high, a.maxReplicas)
	}
	for high-low > 1 {
		middle := (low + high) / 2
		met, err := a.meets(ctx, middle)
		if err != nil {
			return nil, err
		}
		if met != nil {
			high = middle
		} else {
			low = middle
		}
	}
	return a.bestCap(ctx, high)
}

// caps are the sessions at once that are tried with so many replicas: all, then 1, 2, 4 .. a replica, the most first.
func (a *advisor) caps(replicas int) []int {
	if a.fixedCap > 0 {
		return []int{a.fixedCap}
	}
	caps := []int{0}
	for c := replicas; c < a.sessions; c *= 2 {
		caps = append(caps, c)
	}
	slices.Reverse(caps[1:])
	return caps
}

// meets returns the first outcome of so many replicas that meets the goal, nil if none does.
func (a *advisor) meets(ctx context.Context, replicas int) (*fleetOutcome, error) {
	for _, c := range a.caps(replicas) {
		o, err := a.try(ctx, fleetPoint{replicas, c})
		if err != nil {
			return nil, err
		}
		if o.Meets {
			return o, nil
		}
	}
	return nil, nil
}

// bestCap returns the outcome of so many replicas without a cap if that meets the goal: nothing then needs to be kept in
// step with the load. Otherwise it tries all caps and returns the quickest that does.
func (a *advisor) bestCap(ctx context.Context, replicas int) (best *fleetOutcome, err error) {
	for _, c := range a.caps(replicas) {
		o, err := a.try(ctx, fleetPoint{replicas, c})
		if err != nil {
			return nil, err
		}
		if o.Meets && c == 0 {
			return o, nil
		}
		if o.Meets && (best == nil || median(o.T95) < median(best.T95)) {
			best = o
		}
	}
	return best, nil
}

func (a *advisor) try(ctx context.Context, p fleetPoint) (*fleetOutcome, error) {
	for _, o := range a.tried {
		if o.fleetPoint == p {
			return o, nil
		}
	}
	o, err := a.run(ctx, p)
	if err != nil {
		return nil, err
	}
	o.Meets = a.goal.met(o)
	a.tried = append(a.tried, o)
	return o, nil
}

// nearest is the outcome that came nearest to the goal: by time where that is asked for, else by hit rate.
func (a *advisor) nearest() *fleetOutcome {
	return slices.MinFunc(a.tried, func(x, y *fleetOutcome) int {
		if a.goal.t95 > 0 {
			return cmp.Compare(slices.Max(x.T95), slices.Max(y.T95))
		}
		return cmp.Compare(slices.Min(y.HitRate), slices.Min(x.HitRate))
	})
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
