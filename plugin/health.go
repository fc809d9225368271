package plugin

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// answer is how a turn went, as the response's headers tell.
type answer struct {
	// failed says that the status is 5xx. That is what the gateway answers, too,
	// when it reached no replica in time.
	failed bool
	// retried says that the host that answered was not the first that was asked.
	retried bool
}

// readAnswer reads the response's headers in one host call: a property for each
// thing that is asked here would cost ten times as much on every response. The
// gateway tells of retries if it is configured to (Envoy:
// include_attempt_count_in_response).
func readAnswer() (a answer) {
	headers := abi.ResponseHeaders()
	for name, value, ok := headers.Next(); ok; name, value, ok = headers.Next() {
		switch name {
		case ":status":
			a.failed = len(value) == 3 && value[0] == '5'
		case "x-envoy-attempt-count":
			a.retried = value != "1"
		}
	}
	return a
}

// answered records how the turn went. What replicas do well most of the time costs
// nothing here: neither a host call nor a write.
func (t *turn) answered(a answer) {
	s := t.pool.store
	if !a.failed && !a.retried {
		if !s.isWell(t.decision.Replica) {
			s.answered(t.decision.Replica, true, t.began, milliseconds())
		}
		return
	}
	address, err := proxywasm.GetProperty([]string{"upstream", "address"})
	if err != nil {
		return // no host was asked: this answer is another filter's
	}
	now := milliseconds()
	if i := s.view.Index(t.decision.Replica); i >= 0 && s.view.List[i].Address != string(address) {
		s.stats.fallbacks++
		if a.retried {
			s.answered(t.decision.Replica, false, t.began, now)
		}
	}
	if served := s.member(string(address)); served != 0 {
		s.answered(served, !a.failed, t.began, now)
	}
}

// isWell reports whether no failure of the replica is on record, as last read.
func (s *store) isWell(id uint32) bool {
	i := s.view.Index(id)
	return i < 0 || s.view.List[i].Health == policy.Health{}
}

// member returns the id of the pool's member with that address, or 0.
func (s *store) member(address string) uint32 {
	for i := range s.view.List {
		if c := &s.view.List[i]; c.Address == address && c.State != policy.Removed {
			return c.ID
		}
	}
	return 0
}

// answered records that a turn which began at that time went well on the replica,
// or did not. It writes only what changes something.
func (s *store) answered(id uint32, well bool, began, now int64) {
	for range maxTries {
		cas, ok := s.refresh()
		if !ok {
			return
		}
		changed := false
		if well {
			changed = s.view.Succeed(id, began, now)
		} else {
			changed = s.view.Fail(id, began, now, s.health)
		}
		if !changed || s.writeRecord(cas) != casMismatch {
			return
		}
	}
	s.fault(faultCAS)
}
