package plugin

import (
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// answer is how a turn went, as the response's headers tell.
type answer struct {
	// failed says that the status is one of a failure. The gateway answers with 5xx,
	// too, when it reached no replica in time.
	failed bool
	// retried says that the host that answered was not the first that was asked.
	retried bool
}

// plain reports that there is nothing to look into.
func (a answer) plain() bool { return a == answer{} }

const (
	// answersRead is the number of answers that a worker reads in a second, in each
	// pool. Of further ones it reads one in answersSample, and all of replicas that
	// have failed: where so many come, a failure is seen soon all the same.
	answersRead   = 128
	answersSample = 64
)

var answerHeaders = abi.NamesOf(":status", "x-envoy-attempt-count")

// skipsAnswer reports that there is nothing to learn: of a replica that is well, an
// answer that is not in the sample.
func (p *pool) skipsAnswer(id uint32) bool {
	p.answers++
	return p.answers > answersRead && p.answers%answersSample != 0 && p.store.isWell(id)
}

// readAnswer reads the response's headers in one host call, where properties would
// be a call each. The gateway tells of retries if it is configured to (Envoy:
// include_attempt_count_in_response).
func (t *turn) readAnswer() answer {
	answerHeaders.Find(abi.ResponseHeaders)
	attempts := answerHeaders.Value(1)
	return answer{
		failed:  t.filter.config.Health.Statuses.has(answerHeaders.Value(0)),
		retried: attempts != "" && attempts != "1",
	}
}

// succeeded records a plain answer, unless it is not the replica's: the gateway's to a
// client's broken request, a later filter's, or that of a host which the gateway asked
// in the replica's place. What replicas do well most of the time costs nothing here:
// neither a host call nor a write. Without health every answer is plain, and ends what
// a configuration with it has left behind.
func (t *turn) succeeded() {
	s := t.pool.store
	if t.decision.Replica == 0 || s.isWell(t.decision.Replica) || isLocalReply() {
		return
	}
	if served := upstreamAddress(); served == "" || served == t.pool.store.addressOf(t.decision.Replica) {
		s.answered(t.decision.Replica, true, t.began, milliseconds())
	}
}

// answered records an answer that failed, or took a retry, by the host that was
// asked last; "" is none: the answer is then another filter's. The host that was
// named may have another id by now.
func (t *turn) answered(a answer, named, address string) {
	s := t.pool.store
	if address == "" {
		return
	}
	now := milliseconds()
	served := s.member(address)
	others := a.failed && isOthersFailure()
	if address != named {
		s.stats.fallbacks++
	}
	if a.retried && (address != named || others) {
		t.failed(t.decision.Replica, now)
	}
	switch {
	case served == 0 || others:
	case a.failed:
		t.failed(served, now)
	default:
		s.answered(served, true, t.began, now)
		if address != named && t.kept && s.follow(t.key.Hash, t.decision.Replica, served, now) {
			t.filter.log(t.pool, t.key, policy.Decision{Replica: served}, "followed")
		}
	}
}

// failed records that the replica with that id failed the turn, and tells the
// operator where that begins a cool-down.
func (t *turn) failed(id uint32, now int64) {
	p := t.pool
	if !p.store.answered(id, false, t.began, now) {
		return
	}
	i := p.store.view.Index(id)
	if i < 0 {
		return
	}
	if c := &p.store.view.List[i]; c.Health.Cooling() && c.Health.Since == now {
		proxywasm.LogWarn("pinwheel: pool " + p.Name + ": " + c.Address + " fails and is left alone for " +
			(time.Duration(c.Health.Cooldown) * time.Millisecond).String())
	}
}

// isWell reports whether no failure of the replica is on record, as last read.
func (s *store) isWell(id uint32) bool {
	i, ok := s.view.Place(id)
	if !ok {
		i = s.view.Index(id)
	}
	return i < 0 || s.view.List[i].Health.Well()
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
// or did not, and reports whether that changed anything. Else nothing is written.
func (s *store) answered(id uint32, well bool, began, now int64) (changed bool) {
	return s.change(func(r *policy.Replicas) bool {
		if well {
			changed = r.Succeed(id, began)
		} else {
			changed = r.Fail(id, began, now, s.health)
		}
		return changed
	}) && changed
}
