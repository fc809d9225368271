package policy_test

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// pool returns a pool of active replicas of weight 1 with a timeout of 1600 ms.
func pool(addresses ...string) *policy.Pool {
	p := &policy.Pool{Timeout: 1600, MaxSessions: 1 << 20}
	p.Apply(members(addresses...), 0, 0)
	return p
}

// TestTouchKeepsASessionOpen: a turn that lasts longer than the timeout.
func TestTouchKeepsASessionOpen(t *testing.T) {
	p := pool("a")
	p.Turn(key("s1"), nil, 0)
	p.Touch(key("s1"), 1500)
	p.Touch(key("nobody"), 1500)
	if n := p.Sweep(3000); n != 0 || p.Sessions() != 1 {
		t.Errorf("swept %d", n)
	}
	if n := p.Sweep(3100); n != 1 || p.Sessions() != 0 || p.List[0].Open != 0 {
		t.Errorf("swept %d, %d sessions left, %d open", n, p.Sessions(), p.List[0].Open)
	}
}

// TestTurnsAreRecordedCoarsely: a record that lags by a sixteenth of the timeout
// ends the session by as much earlier, never later.
func TestTurnsAreRecordedCoarsely(t *testing.T) {
	p := pool("a")
	p.Turn(key("s1"), nil, 0)
	p.Turn(key("s1"), nil, 100) // A sixteenth: not recorded.
	if d := p.Turn(key("s1"), nil, 1600); d.Reason != policy.Expired {
		t.Errorf("%v", d.Reason)
	}
	p.Turn(key("s1"), nil, 1701)
	if d := p.Turn(key("s1"), nil, 1701+1599); d.Reason != policy.Pinned {
		t.Errorf("%v", d.Reason)
	}
}

func TestFinishReportsWhetherOpen(t *testing.T) {
	p := pool("a")
	p.Turn(key("s1"), nil, 0)
	if p.Finish(key("s2")) || !p.Finish(key("s1")) || p.Finish(key("s1")) {
		t.Error("finish of s2, s1, s1 again")
	}
}

func TestFullTable(t *testing.T) {
	p := pool("a", "b")
	p.MaxSessions = 2
	p.Turn(key("s1"), nil, 0)
	p.Turn(key("s2"), nil, 800)
	placements := p.Placements
	for _, want := range []policy.Reason{policy.TableFull, policy.TableFull} {
		if d := p.Turn(key("s3"), nil, 1599); d.Reason != want || d.Replica == 0 {
			t.Errorf("%+v", d)
		}
	}
	if p.Placements != placements {
		t.Error("a request without a pin counts as a placement")
	}
	// s1 is idle now: a session that returns needs no room, a new one makes it.
	if d := p.Turn(key("s3"), nil, 1600); d.Reason != policy.Placed || p.Sessions() != 2 {
		t.Errorf("%+v, %d sessions", d, p.Sessions())
	}
	if d := p.Turn(key("s1"), nil, 1600); d.Reason != policy.TableFull {
		t.Errorf("%+v", d)
	}
	if d := p.Turn(key("s2"), nil, 1600); d.Reason != policy.Pinned {
		t.Errorf("%+v", d)
	}
}

func TestPoolWithoutMembers(t *testing.T) {
	p := pool()
	p.MaxSessions = 1
	for range 2 {
		if d := p.Turn(key("s1"), nil, 0); d != (policy.Decision{Replica: 0, Reason: policy.NoReplica}) || p.Sessions() != 0 {
			t.Errorf("%+v", d)
		}
	}
	if d := p.Unrecorded(policy.Key{}, policy.Oversized, 0); d != (policy.Decision{Replica: 0, Reason: policy.NoReplica}) {
		t.Errorf("%+v", d)
	}
}

// TestIDsOfAllBytes: an id is opaque bytes (proxy-wasm/proxy-wasm-rust-sdk#25).
func TestIDsOfAllBytes(t *testing.T) {
	p := pool("a", "b", "c")
	for round := range 2 {
		for b := range 256 {
			want := policy.Placed
			if round == 1 {
				want = policy.Pinned
			}
			if d := p.Turn(key(string([]byte{'x', byte(b)})), nil, 0); d.Reason != want {
				t.Fatalf("byte %#x: %v", b, d.Reason)
			}
		}
	}
	if p.Sessions() != 256 {
		t.Errorf("%d sessions", p.Sessions())
	}
}

// A session keeps its replica from its first turn until it is idle for the timeout or the replica is gone.
func TestKeeps(t *testing.T) {
	p := policy.Pool{Timeout: 1000, MaxSessions: 10}
	p.Apply([]policy.Member{{Address: "a", Weight: 1}}, 0, 0)
	key, other := policy.NewKey(policy.Secret{}, []byte("s")), policy.NewKey(policy.Secret{}, []byte("other"))
	if p.Keeps(key, 0) {
		t.Error("a session without a turn has a replica")
	}
	p.Turn(key, nil, 0)
	if !p.Keeps(key, 999) || p.Keeps(key, 1000) || p.Keeps(other, 0) {
		t.Errorf("in time %v, after it %v, another session %v", p.Keeps(key, 999), p.Keeps(key, 1000), p.Keeps(other, 0))
	}
	if p.Apply(nil, 1, 0); p.Keeps(key, 1) {
		t.Error("kept on a replica that is gone")
	}
}
