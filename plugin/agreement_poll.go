package plugin

import (
	"github.com/pinwheel-proxy/pinwheel/plugin/etcd"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// tick does the agreement's periodic work: one worker in each poll asks etcd what has changed.
func (a *agreement) tick(now int64) {
	a.setWall()
	if _, ok := a.read(); !ok {
		return
	}
	if a.well() {
		a.payOwed()
	}
	polls := false
	a.update(func(state *agreementState) bool {
		// A tick may come a little early.
		if polls = now >= state.next-a.tickPeriod()/2; polls {
			state.next = now + a.Poll.Milliseconds()
		}
		return polls
	})
	if polls {
		a.ask(now)
	}
}

// begin polls where that was never done: each VM of a new gateway does so when it starts, for that of a configuration that is
// only tried never hears an answer. Envoy refuses where the cluster has health checks, which end only after the start: the first
// tick is soon enough then.
func (a *agreement) begin(now int64) {
	if _, ok := a.read(); ok && a.state.polled == 0 {
		a.beginning = true
		a.ask(now)
		a.beginning = false
	}
}

// ask polls, or sees to it that it may.
func (a *agreement) ask(now int64) {
	if a.Username != "" && a.token() == "" {
		a.authenticate()
		return
	}
	a.poll(now)
}

func (c AgreementConfig) tickPeriod() int64 { return c.Poll.Milliseconds() / 2 }

// poll asks for the change log and for the sessions of all gateways.
func (a *agreement) poll(now int64) {
	if !a.store.current(now) {
		return
	}
	list := a.store.view.List
	var ids []uint32
	var addresses []string
	at := int(a.state.from)
	if at >= len(list) {
		at = 0
	}
	for ; at < len(list) && len(ids) < etcd.MaxCounts; at++ {
		if list[at].State != policy.Removed {
			ids, addresses = append(ids, list[at].ID), append(addresses, list[at].Address)
		}
	}
	next, after := int64(at), a.state.done
	a.call(callPoll, etcd.TxnPath, a.keys.Poll(after, addresses), func(r etcd.Answer) {
		if r.Code == etcd.OK {
			a.polled(r, ids, next, after, now)
		}
	})
}

// polled takes the answer in: to a poll for what came after that revision, which was asked then, of the replicas with those ids.
func (a *agreement) polled(r etcd.Answer, ids []uint32, next, after, asked int64) {
	now := milliseconds()
	var before agreementState
	replaced := false
	ok := a.update(func(state *agreementState) bool {
		before = *state
		cluster := int64(r.Cluster)
		if replaced = before.cluster != 0 && (cluster != before.cluster || r.Revision < after); replaced {
			*state = agreementState{next: state.next, down: state.down, epoch: now, cluster: cluster, fleet: state.fleet}
			return true
		}
		state.cluster = cluster
		state.announced = max(state.announced, r.Revision)
		if now-max(state.polled, a.store.view.membership.adopted) > logLife/2 {
			state.epoch = now
		}
		return true
	})
	if replaced { // it is another etcd, or an older copy: its log was asked for from a wrong revision on, and is at the next poll
		return
	}
	if !ok || r.Revision < before.done { // a later poll was answered sooner
		return
	}
	var changes []etcd.Change
	counts := make([]uint32, len(ids))
	if !a.keys.Polled(r, len(ids), func(c etcd.Change) { changes = append(changes, c) }, func(i int, n uint32) { counts[i] = n }) {
		a.trip("etcd's answer to a poll is none", now)
		return
	}
	for _, c := range changes {
		a.take(c, before.done == 0, now)
	}
	a.store.current(now)
	a.update(func(state *agreementState) bool {
		if state.polled, state.from = max(state.polled, asked), next; len(ids) > 0 || state.done != 0 {
			state.done = max(state.done, r.Revision) // drains are for replicas: of a pool that has none yet the log is read again
		}
		for i, id := range ids {
			*state.sessions(id) = counts[i]
		}
		state.forget(&a.store.view.Replicas)
		a.mend(state, now)
		return true
	})
	a.grantAhead(now)
}

// take does what an entry of the change log says; first says that the log was not read before.
func (a *agreement) take(c etcd.Change, first bool, now int64) {
	switch {
	case c.Session != "":
		if h, ok := namedSession(c.Session); ok {
			a.store.unpin(h, c.Home)
		}
	case c.Drained != "":
		a.store.drain(c.Drained, c.Begins)
	case c.Reset && !first:
		a.store.reset(now)
	}
}

// grantAhead makes leases before the first session needs them: those of this bucket of time and, in its second half, of the
// next. Some at each poll; what is missing is made when it is missed.
func (a *agreement) grantAhead(now int64) {
	perPoll := 64 + 4*a.shards*a.Poll.Milliseconds()/a.bucket
	bucket := a.bucketOf(now)
	var from, to int64
	a.update(func(state *agreementState) bool {
		switch second := (now+a.wall)%a.bucket > a.bucket/2; {
		case state.granted < bucket, state.granted > bucket+1: // the clock was set back
			state.granted, state.leases = bucket, 0
		case state.granted == bucket && state.leases >= a.shards && second:
			state.granted, state.leases = bucket+1, 0
		}
		from = state.leases
		to = min(from+perPoll, a.shards)
		bucket, state.leases = state.granted, to
		return from < to
	})
	for shard := from; shard < to; shard++ {
		a.call(callGrant, etcd.GrantPath, etcd.Grant(a.lease(bucket, shard), a.ttl), func(etcd.Answer) {})
	}
	if id := a.logLease(now + logLife/4); id != a.granted {
		a.granted = id
		a.call(callGrant, etcd.GrantPath, etcd.Grant(id, logTTL), func(etcd.Answer) {})
	}
}
