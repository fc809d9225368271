package policy_test

import (
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// members returns active members of weight 1.
func members(addresses ...string) (ms []policy.Member) {
	for _, a := range addresses {
		ms = append(ms, policy.Member{Address: a, Weight: 1})
	}
	return ms
}

// replicas returns a membership with the open counts given, ids from 1 on.
func replicas(open ...uint32) *policy.Replicas {
	r := &policy.Replicas{}
	for i, n := range open {
		r.Apply(members(append(addresses(r), string(rune('a'+i)))...), 0, 0)
		r.List[i].Open = n
		r.List[i].Joining = false
	}
	return r
}

func addresses(r *policy.Replicas) (as []string) {
	for _, c := range r.List {
		as = append(as, c.Address)
	}
	return as
}

func TestApply(t *testing.T) {
	r := &policy.Replicas{}
	if !r.Apply(members("a", "b"), 0, 0) || r.List[0].ID != 1 || r.List[1].ID != 2 || r.NextID != 3 {
		t.Fatalf("%+v", r)
	}
	r.Reserve(0, 0)
	before := slices.Clone(r.List)
	if r.Apply(members("b", "a"), 0, 0) || !slices.Equal(r.List, before) {
		t.Errorf("another order changed %+v to %+v", before, r.List)
	}

	ms := members("a", "b")
	ms[0].Weight, ms[1].State = 7, policy.Draining
	if !r.Apply(ms, 0, 0) {
		t.Error("another weight and another state changed nothing")
	}
	want := before[0]
	want.Weight = 7
	if r.List[0] != want || r.List[1].State != policy.Draining {
		t.Errorf("got %+v", r.List)
	}

	if !r.Apply(members("a"), 0, 0) || r.List[1].State != policy.Removed {
		t.Errorf("b is not removed: %+v", r.List)
	}
	if r.Apply(members("a"), 0, 0) {
		t.Error("the same members changed something")
	}
	if !r.Apply(members("b", "a"), 0, 0) || len(r.List) != 3 || r.List[2].ID != 3 || r.List[2].Address != "b" {
		t.Errorf("b came back as %+v", r.List)
	}
}

func TestForget(t *testing.T) {
	r := replicas(1, 0, 0)
	r.Apply(members("c"), 0, 0)
	if !r.Forget(0, 0) || !slices.Equal(addresses(r), []string{"a", "c"}) {
		t.Errorf("%+v", r)
	}
	if r.Forget(0, 0) {
		t.Error("forgot a replica that holds a session")
	}
	r.Return(1, 1)
	if !r.Forget(0, 0) || r.Index(1) != -1 || r.Index(3) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestIndex(t *testing.T) {
	r := replicas(0, 0, 0, 0)
	r.Apply(members("b", "d"), 0, 0)
	r.Forget(0, 0)
	for id, want := range []int{-1, -1, 0, -1, 1, -1} {
		if got := r.Index(uint32(id)); got != want {
			t.Errorf("id %d at %d, want %d", id, got, want)
		}
	}
}

// TestReturnStopsAtZero: a count below zero, or one that wrapped, wins or loses
// every choice from then on (vllm-project/aibrix#2421, BerriAI/litellm#40401).
func TestReturnStopsAtZero(t *testing.T) {
	for _, c := range []struct{ open, n, left, short uint32 }{
		{3, 1, 2, 0}, {3, 3, 0, 0}, {3, 5, 0, 2}, {0, 1, 0, 1}, {0, 0, 0, 0},
	} {
		r := replicas(c.open)
		if short := r.Return(1, c.n); short != c.short || r.List[0].Open != c.left {
			t.Errorf("%+v: left %d, short %d", c, r.List[0].Open, short)
		}
	}
	r := replicas(1)
	if short := r.Return(9, 1); short != 0 || r.List[0].Open != 1 {
		t.Errorf("an unknown replica: short %d, %+v", short, r.List)
	}
}

func TestReserve(t *testing.T) {
	r := replicas(0, 4)
	r.Reserve(1, 0)
	r.Reserve(0, 0)
	if r.Placements != 2 || r.Open() != 6 || r.List[0].LastChosen != 2 || r.List[1].LastChosen != 1 {
		t.Errorf("%+v", r)
	}
}

// TestJoiningEnds with the least loaded of the others, not with the most loaded:
// one replica with long sessions would otherwise hold the newcomer back for ever.
func TestJoiningEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		others []uint32
		change func(*policy.Replicas)
		after  uint32 // placements until it is no longer joining
	}{
		{"level pool", []uint32{3, 3}, nil, 3},
		{"uneven pool", []uint32{50, 2}, nil, 2},
		{"one idle", []uint32{50, 0}, nil, 1},
		{"the least loaded takes none", []uint32{1, 5}, func(r *policy.Replicas) { r.List[0].State = policy.Draining }, 5},
		{"the least loaded joins too", []uint32{1, 5}, func(r *policy.Replicas) { r.List[0].Joining = true }, 5},
		{"nobody else takes any", []uint32{9}, func(r *policy.Replicas) { r.List[0].State = policy.Unhealthy }, 1},
		{"weight 2", []uint32{3, 3}, func(r *policy.Replicas) { r.List[2].Weight = 2 }, 6},
	} {
		r := replicas(c.others...)
		r.Apply(members(append(addresses(r), "new")...), 0, 0)
		i := len(c.others)
		if !r.List[i].Joining {
			t.Errorf("%s: not joining at first", c.name)
		}
		if c.change != nil {
			c.change(r)
		}
		for r.List[i].Joining && r.List[i].Open < 99 {
			r.Reserve(i, 0)
		}
		if r.List[i].Open != c.after {
			t.Errorf("%s: joined after %d placements, want %d", c.name, r.List[i].Open, c.after)
		}
	}
}

func TestJoiningBegins(t *testing.T) {
	r := replicas(0, 0)
	r.Apply(members("a", "b", "c"), 0, 0)
	if r.List[2].Joining {
		t.Error("joining an idle pool")
	}
	r.Reserve(0, 0)
	r.Apply(members("a", "b", "c", "d"), 0, 0)
	if !r.List[3].Joining {
		t.Error("not joining a pool with sessions")
	}
	r.Apply(members("a", "b", "c"), 0, 0)
	if r.List[3].Joining {
		t.Error("joining although removed")
	}
}

func TestPanicking(t *testing.T) {
	r := replicas(0, 0)
	for _, c := range []struct {
		a, b policy.State
		want bool
	}{
		{policy.Active, policy.Unhealthy, false},
		{policy.Draining, policy.Unhealthy, true},
		{policy.Removed, policy.Unhealthy, true},
		{policy.Removed, policy.Active, false},
	} {
		r.List[0].State, r.List[1].State = c.a, c.b
		if got := r.Panicking(0); got != c.want {
			t.Errorf("%v %v: %v", c.a, c.b, got)
		}
	}
}

func TestStateNames(t *testing.T) {
	for s, want := range []string{"active", "draining", "unhealthy", "removed", "cooling", "unknown"} {
		if got := policy.State(s).String(); got != want {
			t.Errorf("%d is %q, want %q", s, got, want)
		}
	}
}
