package policy_test

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

func TestDrainSaysWhatChanged(t *testing.T) {
	var r policy.Replicas
	members := []policy.Member{{Address: "a", Weight: 1}, {Address: "b", Weight: 1, State: policy.Unhealthy}}
	r.Apply(members, 0, 0)
	steps := []struct {
		id            uint32
		drained, want bool
		condition     policy.State
	}{
		{1, false, false, policy.Active},
		{1, true, true, policy.Draining},
		{1, true, false, policy.Draining},
		{2, true, true, policy.Unhealthy},
		{3, true, false, 0},
		{1, false, true, policy.Active},
	}
	for n, s := range steps {
		if got := r.Drain(s.id, s.drained); got != s.want {
			t.Errorf("step %d: changed %v", n, got)
		}
		if i := r.Index(s.id); i >= 0 && r.List[i].Condition() != s.condition {
			t.Errorf("step %d: %v, want %v", n, r.List[i].Condition(), s.condition)
		}
	}
	r.Apply(members[:1], 0, 0)
	if r.Drain(2, false) {
		t.Error("a removed replica was drained")
	}
}

// vllm-project/aibrix#2421: discovery that misses a host for one round does not
// make another of it.
func TestADrainSurvivesAShortAbsence(t *testing.T) {
	const grace = 1000
	var r policy.Replicas
	both := []policy.Member{{Address: "a", Weight: 1}, {Address: "b", Weight: 1}}
	r.Apply(both, 0, grace)
	r.Drain(1, true)
	r.Apply(both[1:], 100, grace)
	r.Apply(both, 1099, grace)
	if i := r.Index(1); r.List[i].Condition() != policy.Draining {
		t.Errorf("after a short absence: %+v", r.List[i])
	}
	r.Apply(both[1:], 2000, grace)
	r.Apply(both, 3000, grace)
	if c := r.List[len(r.List)-1]; c.Address != "a" || c.Condition() != policy.Active {
		t.Errorf("after a long absence: %+v", c)
	}
}

// A gateway that falls back to a host of its own choice knows of no drain: the
// session goes on at a replica that takes sessions, or is placed anew.
func TestNoSessionFollowsToADrain(t *testing.T) {
	members := []policy.Member{{Address: "a", Weight: 1}, {Address: "b", Weight: 1}, {Address: "c", Weight: 1, State: policy.Draining}}
	var r policy.Replicas
	r.Apply(members, 0, 0)
	r.Drain(2, true)
	r.Fail(1, 0, 0, policy.HealthRule{Failures: 1, Cooldown: 10, MaxCooldown: 10})
	r.Apply(append(members, policy.Member{Address: "d", Weight: 1}), 0, 0)
	for served, want := range map[uint32]bool{2: false, 3: false, 4: true} {
		if got := r.Follows(1, served, 5); got != want {
			t.Errorf("to %+v: %v", r.List[r.Index(served)], got)
		}
	}
	// With nothing else left, whoever answers will do.
	r.Apply(members[1:], 0, 0)
	for _, served := range []uint32{2, 3} {
		if !r.Follows(1, served, 5) {
			t.Errorf("not to %+v, and there is no other", r.List[r.Index(served)])
		}
	}
}
