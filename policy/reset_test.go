package policy_test

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

func TestResetEndsSessionsOnce(t *testing.T) {
	var r policy.Replicas
	r.Apply([]policy.Member{{Address: "a", Weight: 2}, {Address: "b", Weight: 1}}, 0, 0)
	r.Reserve(0, 0)
	r.Reserve(0, 0)
	if n := r.Reset(0); n != 2 {
		t.Errorf("%d sessions ended, want 2", n)
	}
	if n := r.Reset(0); n != 0 {
		t.Errorf("%d sessions ended twice", n)
	}
	if !r.Void(1) || r.Void(2) || r.Void(3) || r.Void(9) {
		t.Errorf("void: %+v", r.List)
	}
	if c := r.List[r.Index(3)]; c.Address != "a" || c.Weight != 2 || c.Open+uint32(c.Placements) != 0 || r.Placements != 0 {
		t.Errorf("a begins anew as %+v, %d placements", c, r.Placements)
	}
	// What was under way when the pool was reset still ends.
	if short := r.Return(1, 2); short != 0 {
		t.Errorf("%d returned too many", short)
	}
	if !r.Forget(0, 1000) || r.Index(1) >= 0 {
		t.Errorf("a void replica without pins is kept: %+v", r.List)
	}
}

// Resets in a row do not grow the record that every placement reads.
func TestResetsDoNotAddUp(t *testing.T) {
	var r policy.Replicas
	r.Apply([]policy.Member{{Address: "a", Weight: 1}, {Address: "b", Weight: 1}}, 0, 0)
	r.Reserve(0, 0)
	for range 100 {
		r.Reset(0)
	}
	if len(r.List) != 3 {
		t.Errorf("%d replicas, want the two and a void one", len(r.List))
	}
}

// A session of before the reset is nobody's, however old.
func TestPinsOfBeforeAResetAreOver(t *testing.T) {
	var r policy.Replicas
	r.Apply([]policy.Member{{Address: "a", Weight: 1}}, 0, 0)
	r.Reserve(0, 0)
	pin := policy.Pin{Replica: 1, LastSeen: 0}
	r.Reset(0)
	for _, now := range []int64{1, 99, 100, 1000} {
		if got := policy.Judge(pin, &r, now, 100); got != policy.Placed || !policy.Over(pin, &r, now, 100) {
			t.Errorf("at %d: %v, over %v", now, got, policy.Over(pin, &r, now, 100))
		}
	}
}

// vllm-project/aibrix#2421: a reset while discovery misses a host does not end the
// host's drain.
func TestADrainSurvivesAResetInItsAbsence(t *testing.T) {
	const grace = 1000
	for _, busy := range []bool{false, true} {
		var r policy.Replicas
		both := []policy.Member{{Address: "a", Weight: 1}, {Address: "b", Weight: 1}}
		r.Apply(both, 0, grace)
		if busy {
			r.Reserve(0, 0)
		}
		r.Drain(1, true)
		r.Apply(both[1:], 100, grace)
		r.Reset(200)
		r.Apply(both, 300, grace)
		for _, c := range r.List {
			if c.Address == "a" && c.State != policy.Removed && (!c.Drained || c.Open > 0) {
				t.Errorf("busy %v: %+v", busy, c)
			}
		}
	}
}
