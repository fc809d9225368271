package report

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// A tile names the best and the next, and says when their seeds overlap.
func TestTiles(t *testing.T) {
	policy := func(name string, walls ...float64) (p replay.PolicyResult) {
		p.Policy = name
		for _, w := range walls {
			p.Seeds = append(p.Seeds, replay.SeedResult{Wall: w})
		}
		return p
	}
	for _, c := range []struct {
		r    replay.Result
		want tile
	}{
		{replay.Result{Policies: []replay.PolicyResult{policy("a", 30, 40), policy("b", 10, 20), policy("c", 21, 22)}}, tile{Name: "wall", Long: "until the last session ended", Value: "15.0", Unit: "s", Policy: "b", Class: "p1", Next: "next: c 21.5 s"}},
		{replay.Result{Policies: []replay.PolicyResult{policy("a", 30, 40), policy("b", 10, 31)}}, tile{Name: "wall", Long: "until the last session ended", Value: "20.5", Unit: "s", Policy: "b", Class: "p1", Next: "next: a 35.0 s, seeds overlap"}},
		{replay.Result{Policies: []replay.PolicyResult{policy("a", 30), policy("b", 30)}}, tile{Name: "wall", Long: "until the last session ended", Value: "30.0", Unit: "s", Next: "all policies"}},
		{replay.Result{Policies: []replay.PolicyResult{policy("a", 30)}}, tile{Name: "wall", Long: "until the last session ended", Value: "30.0", Unit: "s"}},
	} {
		if got := tiles(&c.r, shownPolicies(&c.r))[0]; got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}
