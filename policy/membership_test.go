package policy_test

import (
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// TestShortAbsence: "A leaves discovery for one tick and returns while 5 requests
// still run: load must still be 5"; beyond the grace it is another replica, and
// what ran on the old one takes nothing off the new one
// (vllm-project/aibrix#2421).
func TestShortAbsence(t *testing.T) {
	for _, c := range []struct {
		name       string
		grace, now int64
		same       bool
	}{
		{"one round", 5000, 102_000, true},
		{"just within", 5000, 104_999, true},
		{"just beyond", 5000, 105_000, false},
		{"no grace", 0, 100_000, false},
	} {
		r := replicas(5, 1)
		r.List[0].Health = policy.Health{Failures: 2}
		r.Apply(members("b"), 100_000, c.grace)
		if r.Return(1, 1); r.List[0].State != policy.Removed || r.List[0].Open != 4 {
			t.Errorf("%s: absent as %+v", c.name, r.List[0])
		}
		r.Forget(c.now, c.grace)
		if !r.Apply(members("b", "a"), c.now, c.grace) {
			t.Errorf("%s: nothing changed", c.name)
		}
		if c.same {
			if a := r.List[0]; len(r.List) != 2 || a.State != policy.Active || a.Open != 4 || a.Health.Failures != 2 {
				t.Errorf("%s: back as %+v", c.name, r.List)
			}
			continue
		}
		r.Return(1, 4)
		if a := r.List[2]; a.ID != 3 || a.Address != "a" || a.Open != 0 || a.Health != (policy.Health{}) {
			t.Errorf("%s: back as %+v", c.name, r.List)
		}
	}
}

// TestLatestOfAnAddressReturns: of two that went, the latter.
func TestLatestOfAnAddressReturns(t *testing.T) {
	r := replicas(1, 1)
	r.Apply(members("b"), 0, 0)
	r.Apply(members("a", "b"), 10, 0)
	r.Reserve(2, 10)
	r.Apply(members("b"), 20, 50)
	if r.Apply(members("a", "b"), 30, 50); r.List[0].State != policy.Removed || r.List[2].State != policy.Active || len(r.List) != 3 {
		t.Errorf("%+v", r.List)
	}
}

// TestForgetWaitsForTheGrace: what may still come back is kept.
func TestForgetWaitsForTheGrace(t *testing.T) {
	r := replicas(0, 0)
	r.Apply(members("b"), 100, 50)
	if r.Forget(149, 50) || len(r.List) != 2 {
		t.Error("forgotten within the grace")
	}
	if !r.Forget(150, 50) || !slices.Equal(addresses(r), []string{"b"}) {
		t.Errorf("kept %v", addresses(r))
	}
}

// TestReturnIsJoining: who comes back with fewer sessions than all others is
// limited as a newcomer is, who comes back with as many is not.
func TestReturnIsJoining(t *testing.T) {
	for _, c := range []struct {
		name string
		open []uint32
		from []policy.State // of the first ones; the rest are active
		want []bool
	}{
		{"from unhealthy", []uint32{0, 9, 9}, []policy.State{policy.Unhealthy}, []bool{true, false, false}},
		{"from draining", []uint32{3, 9, 9}, []policy.State{policy.Draining}, []bool{true, false, false}},
		{"with as many as the least loaded", []uint32{8, 9, 8}, []policy.State{policy.Unhealthy}, []bool{false, false, false}},
		{"in an idle pool", []uint32{0, 0, 0}, []policy.State{policy.Unhealthy}, []bool{false, false, false}},
		{"with the only sessions", []uint32{4, 0, 0}, []policy.State{policy.Draining}, []bool{false, false, false}},
		{"two at once", []uint32{0, 1, 9}, []policy.State{policy.Unhealthy, policy.Draining}, []bool{true, true, false}},
		{"all at once", []uint32{0, 5, 9}, []policy.State{policy.Unhealthy, policy.Unhealthy, policy.Unhealthy}, []bool{false, false, false}},
	} {
		for _, order := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}} {
			r := replicas(c.open...)
			for i, s := range c.from {
				r.List[i].State = s
			}
			r.Apply(members(order...), 0, 0)
			for i, want := range c.want {
				if r.List[i].Joining != want {
					t.Errorf("%s, %v: %+v", c.name, order, r.List)
				}
			}
		}
	}
}

func TestReturnFromCoolingIsJoining(t *testing.T) {
	for _, c := range []struct {
		open uint32
		from policy.State
		want bool
	}{{0, policy.Active, true}, {9, policy.Active, false}, {0, policy.Draining, false}} {
		r := replicas(c.open, 9, 9)
		r.List[0].State, r.List[0].Health = c.from, policy.Health{Cooldown: 10, Until: 10}
		if r.Succeed(1, 5); r.List[0].Joining != c.want {
			t.Errorf("%+v: %+v", c, r.List[0])
		}
	}
}
