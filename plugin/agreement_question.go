package plugin

import (
	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/plugin/etcd"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// question is a request that waits for etcd to say where its session's home is.
type question struct {
	turn   *turn // nil: its client has gone
	stream uint32
	pool   *pool
	key    policy.Key
	// body is what was read of the request's body, nil for nothing.
	body  *pause
	began int64 // ms
	// reason is why the session has no pin here that holds; Pinned: it has, in doubt, on the replica own.
	reason policy.Reason
	own    uint32
	// candidate is the replica that is to be the home, 0 while none is chosen, and address its own; counted says that it was
	// counted there.
	candidate uint32
	address   string
	counted   bool
	// tries counts the transactions.
	tries int
}

// maxQuestions bounds the transactions for one request: each further one means that another gateway was faster.
const maxQuestions = 6

// agree sends the request of a session on its way to its home, by its pin if that is trusted, else as soon as etcd has said
// where that is: it reports whether the request waits. w is what was read of its body, nil for nothing.
func (t *turn) agree(p *pool, key policy.Key, w *pause, now int64) (waits bool) {
	f, a, s := t.filter, p.agreement, p.store
	at := &s.at
	if !s.look(at, key, now) {
		t.route(p, key, true, p.decided(p.choose(key, policy.Error, now), now), now)
		return false
	}
	pinned := at.reason == policy.Pinned
	if pinned && a.trusts(at.shard, at.at) { // nearly all
		id, renew := at.old.Replica, policy.Renew(at.old, now, s.timeout)
		t.route(p, key, true, p.decided(policy.Decision{Replica: id, Reason: policy.Pinned}, now), now)
		if renew {
			a.keep(key.Hash, id, now)
		}
		return false
	}
	q := &question{turn: t, pool: p, key: key, body: w, began: now, reason: at.reason}
	if pinned {
		q.own, q.candidate, q.address = at.old.Replica, at.old.Replica, p.addressOf(at.old.Replica)
	}
	from := ""
	if at.reason == policy.FailoverRemoved || at.reason == policy.FailoverUnhealthy {
		from = p.addressOf(at.old.Replica)
	}
	_, ok := a.read()
	if ok && a.well() && len(f.calls.asking) < maxPaused && q.ask(from, now) {
		if q.stream = abi.CurrentStream(); w != nil {
			q.stream = w.stream
		}
		t.question = q
		f.calls.wait(q)
		f.strip() // until a host is named here the client names none
		return true
	}
	t.route(p, key, true, q.fallback(now), now)
	return false
}

func (q *question) prompt() *policy.Prompt {
	if q.body == nil || !q.body.prompted || q.body.prompt.Len() == 0 {
		return nil
	}
	return &q.body.prompt.Prompt
}

// ask asks etcd to make the candidate the session's home: in place of from, or if there is none where that is "". It is
// false if there is no candidate, or etcd cannot be asked.
func (q *question) ask(from string, now int64) bool {
	a := q.pool.agreement
	if q.tries++; q.tries > maxQuestions {
		return false
	}
	leaving := uint32(0)
	if from != "" {
		leaving = q.pool.store.member(from)
	}
	if q.candidate == 0 || q.address == from {
		q.candidate = a.candidate(q.key, leaving, q.pool.store.recall(q.prompt(), now), now)
		q.counted, q.address = q.candidate != 0, q.pool.addressOf(q.candidate)
	}
	if q.candidate == 0 || q.address == from { // none is better
		q.drop()
		return false
	}
	leases := a.leases(q.key.Hash, now)
	session := sessionName(q.key.Hash)
	kind, body := callCreate, ""
	if from == "" {
		body = a.keys.Create(session, q.address, leases)
	} else {
		kind, body = callMove, a.keys.Move(session, from, q.address, leases)
	}
	sent := a.call(kind, etcd.TxnPath, body, func(r etcd.Answer) { q.answered(from, leases, now, r) })
	if !sent {
		q.drop()
	}
	return sent
}

// drop takes the session off its candidate.
func (q *question) drop() {
	if q.counted {
		q.pool.agreement.uncount(q.candidate)
	}
	q.candidate, q.address, q.counted = 0, "", false
}

// answered takes etcd's answer in; asked is when it was asked.
func (q *question) answered(from string, leases etcd.Leases, asked int64, r etcd.Answer) {
	if q.candidate == 0 { // the request has gone on without
		return
	}
	a, now := q.pool.agreement, milliseconds()
	switch {
	case r.Code == etcd.NotFound: // neither a poll nor another request has made the leases yet
		a.grant(leases, func() { q.again(from, milliseconds()) })
	case r.Code != etcd.OK:
		q.giveUp(now)
	case r.Succeeded:
		q.settle(q.candidate, true, r.Revision, asked, now)
	case r.Home == q.address && q.address != "":
		q.adopt(q.candidate, leases, asked, r)
	case r.Home == "": // it has ended meanwhile
		q.again("", now)
	default:
		home := q.pool.store.member(r.Home)
		if home == 0 || policy.Judge(policy.Pin{Replica: home, LastSeen: now}, &q.pool.store.view.Replicas, now, q.pool.store.timeout) != policy.Pinned {
			if q.reason == policy.Placed || q.reason == policy.Pinned {
				q.reason = policy.FailoverUnhealthy
				if home == 0 {
					q.reason = policy.FailoverRemoved
				}
			}
			q.again(r.Home, now)
			return
		}
		q.drop()
		q.adopt(home, leases, asked, r)
	}
}

func (q *question) again(from string, now int64) {
	if q.turn == nil || !q.ask(from, now) {
		q.giveUp(now)
	}
}

func (q *question) giveUp(now int64) {
	q.drop()
	if q.turn != nil {
		q.end(q.fallback(now))
	}
}

// adopt takes the home that the session has. One whose lease is of another bucket of time is in doubt until it was renewed.
func (q *question) adopt(home uint32, leases etcd.Leases, asked int64, r etcd.Answer) {
	if q.counted { // it was counted by whoever placed it
		q.pool.agreement.uncount(q.candidate)
		q.counted = false
	}
	q.reason, q.candidate = policy.Pinned, home
	a, now := q.pool.agreement, milliseconds()
	if r.Lease == leases.Session {
		q.settle(home, false, r.Revision, asked, now)
		return
	}
	q.settle(home, false, -1, asked, now)
	a.renew(q.key.Hash, home, now, 0)
}

// settle pins the session to the home that it has at that revision, and sends the request there.
func (q *question) settle(home uint32, placed bool, revision, asked, now int64) {
	p := q.pool
	d := policy.Decision{Replica: home, Reason: q.reason}
	if q.own != 0 {
		if home == q.own {
			p.agreement.stats.kept++
		} else {
			p.agreement.stats.moved++
		}
	}
	if !p.agreement.settle(q.key.Hash, home, placed, revision, asked, now) {
		d.Reason = policy.TableFull
	} else if placed {
		p.store.learn(q.prompt(), home)
	}
	q.end(d)
}

// fallback decides without etcd: the pin that the session has here, or else the first replica of its order, which is what
// other gateways choose that cannot ask. The pin is in doubt.
func (q *question) fallback(now int64) policy.Decision {
	p := q.pool
	p.agreement.stats.fallbacks++
	at := &p.store.at
	if !p.store.look(at, q.key, now) {
		return p.choose(q.key, policy.Error, now)
	}
	if at.reason == policy.Pinned {
		d := policy.Decision{Replica: at.old.Replica, Reason: policy.Pinned}
		if policy.Renew(at.old, now, p.store.timeout) {
			p.agreement.keep(q.key.Hash, d.Replica, now)
		}
		return d
	}
	d, ok := p.store.placeBy(policy.ConsistentHash{}, q.key, q.prompt(), now, at)
	if !ok {
		d.Reason = policy.Error
	}
	if d.Replica == 0 && d.Reason != policy.NoReplica {
		d = p.choose(q.key, d.Reason, now)
	}
	return d
}

// end sends the request that waits where the decision says.
func (q *question) end(d policy.Decision) {
	t := q.turn
	if t == nil {
		return
	}
	f := t.filter
	f.unask(t)
	defer abi.EnterPlugin(f.id)
	if abi.EnterStream(q.stream) {
		defer abi.ContinueRequest() // also when routing panics
		now := milliseconds()
		t.route(q.pool, q.key, true, q.pool.decided(d, now), now)
	}
	if q.body != nil {
		f.recycle(q.body)
	}
}

// unask takes the request out of those that wait for etcd.
func (f *filter) unask(t *turn) {
	if q := t.question; q != nil {
		delete(f.calls.asking, q)
		t.question, q.turn = nil, nil
	}
}

// resumeAsking lets requests go on whose questions have been lost.
func (f *filter) resumeAsking(now int64) {
	for r := range f.calls.answering {
		if now-r.began > lateAfter {
			r.send()
		}
	}
	for q := range f.calls.asking {
		if now-q.began > lateAfter {
			q.giveUp(now)
		}
	}
}
