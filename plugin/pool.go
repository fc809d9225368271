package plugin

import (
	"strings"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// pool is one pool as one worker serves it.
type pool struct {
	PoolConfig // its Policy is never empty here
	chooser    policy.Policy
	store      *store
	inflight   *inflight
	lease      *lease
	// agreement is nil where sessions are this gateway's own. It is nil of policies that pin none.
	agreement *agreement
	counters  counters
	gauges    gauges
	degraded  gauge // of the agreement
	rotations *rotations
	// pins is chooser.Pins().
	pins bool
	// weighsLoad says that the policy looks at running requests.
	weighsLoad bool
	// period is the time between ticks, in ms.
	period int64
	// reconciled is when this worker last compared counts with pins, in ms.
	reconciled int64
	// looked is set when a response was compared with its decision since the last
	// tick; elsewhere paces the warnings of a difference.
	looked    bool
	elsewhere warning
	// answers counts those since the last tick, for health.
	answers int
	// keyless counts the requests without a session id to warn of, and asked are
	// the session headers, as the warning names them.
	keyless uint64
	asked   string
	warned  warning
	// overrides are the members that configuration names beside discovery, by
	// address; vanished is set when the last answer named none.
	overrides map[string]policy.Member
	vanished  bool
	targets   targets
	// running and loads are scratch.
	running []uint32
	loads   []*replicaGauges
}

func newPool(data sharedData, pc PoolConfig, c *Config, owner uint64) *pool {
	if pc.Policy == "" {
		pc.Policy = c.Policy
	}
	p := &pool{
		PoolConfig: pc,
		chooser:    c.chooser(pc.Policy),
		rotations:  &rotations{},
		store:      newStore(data, pc, c.Session),
		inflight:   newInflight(data, pc.Name, owner),
		lease:      newLease(data, pc.Name, owner),
		gauges:     gauges{},
		period:     c.tickPeriod().Milliseconds(),
		asked:      strings.Join(c.Session.Headers, ", "),
	}
	p.pins, p.targets = p.chooser.Pins(), targets{spares: c.Target.Spares, base64: c.Target.Base64, version: noVersion}
	p.store.policy, p.store.health = p.chooser, c.Health.rule()
	if pc.Discovered {
		p.store.grace = 3 * c.Discovery.Interval.Milliseconds()
		p.overrides = make(map[string]policy.Member, len(pc.Members))
		for _, m := range pc.Members {
			p.overrides[m.Address] = m
		}
	}
	switch p.chooser.(type) {
	case policy.LeastLoaded, policy.PowerOfTwo:
		p.weighsLoad = true
	case policy.CacheAware:
		p.store.prefixes = newPrefixes(data, &p.store.stats, pc.Name, c.CacheAware.MaxPrefixes)
	}
	return p
}

// observe reads what other workers' requests are running, if the policy asks.
func (p *pool) observe(now int64) {
	if p.weighsLoad && p.inflight.observe(now) != nil {
		p.store.fault(faultSharedData)
	}
}

// readsPrompts says that the policy asks for the prompt of a session that has no pin.
func (p *pool) readsPrompts() bool { return p.store.prefixes != nil }

// pinned decides a turn of the session with that key if it has a pin that holds. If
// not, or if shared data does not answer, ok is false and nothing is decided.
func (p *pool) pinned(key policy.Key, now int64) (d policy.Decision, ok bool) {
	at := &p.store.at
	if !p.store.look(at, key, now) || at.reason != policy.Pinned {
		return d, false
	}
	return p.decided(policy.Decision{Replica: at.old.Replica, Reason: policy.Pinned}, now), true
}

// holds reports whether the session with that key has a pin that holds and needs no
// agreement.
func (p *pool) holds(key policy.Key, now int64) bool {
	at := &p.store.at
	return p.store.look(at, key, now) && at.reason == policy.Pinned && p.agreement.trusts(at.shard, at.at)
}

// decide says which replica serves a request: of the session with that key, or,
// if it has no key, for the reason given. prompt is the request's, nil if it was
// not read.
func (p *pool) decide(key policy.Key, keyed bool, refused policy.Reason, prompt *policy.Prompt, now int64) policy.Decision {
	d := policy.Decision{Reason: refused}
	switch {
	case keyed && p.pins:
		at := &p.store.at
		ok := p.store.look(at, key, now)
		if ok && at.reason == policy.Pinned { // nearly all
			return p.decided(policy.Decision{Replica: at.old.Replica, Reason: policy.Pinned}, now)
		}
		if ok {
			d, ok = p.store.place(key, prompt, now, at)
		}
		if !ok {
			d = policy.Decision{Reason: policy.Error}
		}
	case keyed:
		d.Reason = policy.Placed
		if !p.store.current(now) {
			d.Reason = policy.Error
		}
	default:
		p.store.current(now)
	}
	if d.Replica == 0 && d.Reason != policy.NoReplica {
		d = p.choose(key, d.Reason, now)
	}
	return p.decided(d, now)
}

// decided counts the decision.
func (p *pool) decided(d policy.Decision, now int64) policy.Decision {
	if v := &p.store.view; !v.Calm() && d.Replica != 0 && v.Panicking(now) {
		d.Panic = true
		p.counters.panics++
	}
	p.counters.decisions[d.Reason]++
	return d
}

// targetOf returns what the gateway is told of the decision, "" if there is no replica.
// It is valid until the next call.
func (p *pool) targetOf(d policy.Decision, key policy.Key, now int64) string {
	view := &p.store.view
	primary, ok := view.Place(d.Replica)
	if !ok {
		if primary = view.Index(d.Replica); primary < 0 {
			return ""
		}
	}
	if text := p.targets.known(view, key.SpareClass(), primary); text != "" {
		return text
	}
	return p.targets.value(view, key, primary, p.pins, now)
}

const (
	// sweepPeriod is the time in which all shards are swept once, in ms; less
	// where sessions expire sooner.
	sweepPeriod = 30_000
	// reconcilePeriod is the time between two comparisons of all counts with all
	// pins, in ms.
	reconcilePeriod = 60_000
)

// sweepShards is the number of shards to sweep at one tick.
func (p *pool) sweepShards() uint32 {
	ticks := max(1, min(p.store.timeout/4, sweepPeriod)/p.period)
	return uint32((int64(p.store.view.shards) + ticks - 1) / ticks)
}

// Reluctance to take a pool's lease. The gateway's main thread runs a VM too, which
// serves no requests and has the time; but a VM that dies there does not come
// back, so it is only preferred.
const (
	idle       = 0 // this VM has served no request
	serving    = 1
	superseded = 2 // this VM runs a configuration that another has replaced
)

// tick does the worker's own periodic work for the pool, and the pool's if this
// worker holds the lease. It reports whether it does.
func (p *pool) tick(now int64, reluctance int) (leads bool) {
	p.store.heard, p.looked, p.answers = false, false, 0
	p.store.view.changed() // whatever a panic may have left half done
	p.store.current(now)
	p.inflight.forget(&p.store.view.Replicas)
	if err := p.inflight.publish(now); err != nil {
		p.store.fault(faultSharedData)
	}
	p.observe(now)
	if !p.store.inForce() {
		reluctance = superseded
	}
	if leads = p.lease.hold(now, reluctance); leads {
		p.lead(now)
	}
	if p.agreement != nil {
		p.agreement.tick(now)
	}
	p.report(now)
	return leads
}

// touch keeps the pin of a session alive while a turn of it runs.
func (p *pool) touch(h policy.Hash, replica uint32, now int64) {
	if p.agreement != nil {
		p.agreement.keep(h, replica, now)
		return
	}
	p.store.touch(h, replica, now)
}

func (p *pool) lead(now int64) {
	p.store.sweep(p.sweepShards(), now)
	if now-p.reconciled >= reconcilePeriod || p.store.suspicion.any() {
		p.reconciled = now
		p.store.reconcile()
	}
	running, err := p.inflight.total(now)
	if err != nil {
		p.store.fault(faultSharedData)
		return
	}
	cas, ok := p.store.refresh()
	if !ok {
		return
	}
	p.setGauges(running)
	p.store.forgetRemoved(running, cas, now)
}
