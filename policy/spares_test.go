package policy_test

import (
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

func TestSpares(t *testing.T) {
	for _, c := range []struct {
		name       string
		states     []policy.State
		primary, n int
		want       int // how many
		never      []int
	}{
		{"two of five", make([]policy.State, 5), 3, 2, 2, []int{3}},
		{"none asked", make([]policy.State, 5), 3, 0, 0, nil},
		{"fewer than asked", make([]policy.State, 3), 1, 5, 2, []int{1}},
		{"never more than the bound", make([]policy.State, 20), 0, 20, policy.MaxSpares, []int{0}},
		{"no primary", make([]policy.State, 3), -1, 8, 3, nil},
		{"only those that take sessions", []policy.State{0, policy.Unhealthy, 0, policy.Draining, policy.Removed}, 0, 8, 1, []int{0, 1, 3, 4}},
		{"panic", []policy.State{policy.Unhealthy, policy.Draining, policy.Removed, policy.Unhealthy}, 0, 8, 2, []int{0, 2}},
		{"alone", make([]policy.State, 1), 0, 2, 0, nil},
		{"empty pool", nil, -1, 2, 0, nil},
	} {
		r := replicas(make([]uint32, len(c.states))...)
		for i, s := range c.states {
			r.List[i].State = s
		}
		got := policy.Spares(nil, r, key("s1"), c.primary, c.n, 0)
		if len(got) != c.want {
			t.Errorf("%s: %v, want %d", c.name, got, c.want)
		}
		for _, i := range c.never {
			if slices.Contains(got, i) {
				t.Errorf("%s: %v holds %d", c.name, got, i)
			}
		}
	}
}

// TestSparesOrder: fewer spares are the head of more, and the order is that of an
// idle pool's placement: take the first away and the second is placed.
func TestSparesOrder(t *testing.T) {
	r := replicas(make([]uint32, 12)...)
	for _, id := range manyIDs(200) {
		all := policy.Spares(nil, r, key(id), -1, policy.MaxSpares, 0)
		for n := range all {
			if got := policy.Spares(nil, r, key(id), -1, n, 0); !slices.Equal(got, all[:n]) {
				t.Fatalf("%s: %d of %v are %v", id, n, all, got)
			}
		}
		if got := policy.Spares(nil, r, key(id), all[0], 3, 0); !slices.Equal(got, all[1:4]) {
			t.Fatalf("%s: after %d of %v come %v", id, all[0], all, got)
		}
		idle := replicas(make([]uint32, 12)...)
		for _, i := range all {
			if got := sticky(idle, key(id), 0); got != i {
				t.Fatalf("%s: placed on %d, want %d of %v", id, got, i, all)
			}
			idle.List[i].State = policy.Unhealthy
		}
	}
}

// TestSparesAreWell: one that still has to show it is none, unless nobody is.
func TestSparesAreWell(t *testing.T) {
	r := replicas(0, 0, 0, 0)
	for i := range 3 {
		r.List[i].Health = policy.Health{Cooldown: 10, Until: int64(10 * i)}
	}
	if got := policy.Spares(nil, r, key("s1"), -1, 8, 15); !slices.Equal(got, []int{3}) {
		t.Errorf("got %v", got)
	}
	r.List[3].State = policy.Draining
	r.List[0].Health.Until, r.List[1].Health.Until = 99, 99
	if got := policy.Spares(nil, r, key("s1"), 0, 8, 15); len(got) != 3 {
		t.Errorf("in panic %v", got)
	}
}

func TestSparesAreAppended(t *testing.T) {
	dst := append(make([]int, 0, 8), 7)
	got := policy.Spares(dst, replicas(0, 0, 0), key("s1"), 0, 2, 0)
	if len(got) != 3 || got[0] != 7 || &got[0] != &dst[0] {
		t.Errorf("got %v", got)
	}
}
