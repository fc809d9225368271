package policy_test

import (
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

func TestUnpinned(t *testing.T) {
	const draining, unhealthy, removed = policy.Draining, policy.Unhealthy, policy.Removed
	for _, c := range []struct {
		name    string
		open    []uint32
		weights []uint32
		states  []policy.State
		want    []int // one after the other
	}{
		{"the tied in turn", []uint32{0, 0}, nil, nil, []int{0, 1, 0, 1}},
		{"three", []uint32{2, 2, 2}, nil, nil, []int{0, 1, 2, 0}},
		{"only the least loaded", []uint32{1, 0, 1, 0}, nil, nil, []int{1, 3, 1, 3}},
		{"a later one is less loaded", []uint32{3, 2, 1, 2}, nil, nil, []int{2, 2, 2}},
		{"by weight", []uint32{4, 2, 3}, []uint32{2, 1, 1}, nil, []int{0, 1, 0, 1}},
		{"those that take sessions", []uint32{0, 0, 0, 0}, nil, []policy.State{unhealthy, 0, draining, 0}, []int{1, 3, 1}},
		{"panic", []uint32{0, 0, 0}, nil, []policy.State{unhealthy, removed, draining}, []int{0, 2, 0}},
		{"alone", []uint32{5}, nil, nil, []int{0, 0}},
		{"removed", []uint32{0}, nil, []policy.State{removed}, []int{-1}},
		{"empty pool", nil, nil, nil, []int{-1, -1}},
	} {
		r := replicas(c.open...)
		for i := range c.weights {
			r.List[i].Weight = c.weights[i]
		}
		for i := range c.states {
			r.List[i].State = c.states[i]
		}
		var got []int
		var turns policy.Rotation
		for range c.want {
			i := policy.StickyLeastLoaded{}.Unpinned(r, policy.Query{Chosen: turns.Of(r)})
			if got = append(got, i); i >= 0 {
				turns.Chose(r.List[i].ID)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
