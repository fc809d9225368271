package plugin

import (
	"strconv"
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// counters are the totals of one filter in one worker that were not reported
// yet. They are reported at ticks: a host call per turn would cost more than the
// decision.
type counters struct {
	decisions [policy.NumReasons]uint64
	// panics are decisions at which no replica was eligible.
	panics uint64
	// ids are the gateway's counters in the order in which report names them, and at is
	// the next one's position: a name is made, and looked up, once.
	ids []abi.Metric
	at  int
}

// add adds n to the next counter of the report. The parts of its name are always the
// same at that place. It is defined when it is first named, at 0: of a series that
// begins at 1, rate and increase never see the first event.
func (c *counters) add(n uint64, name ...string) {
	if c.at == len(c.ids) {
		c.ids = append(c.ids, abi.DefineCounter(strings.Join(name, "")))
	}
	id := c.ids[c.at]
	c.at++
	if n != 0 { // Envoy refuses to add nothing, and abi panics
		id.Add(int64(n))
	}
}

// report hands a pool's counts to the gateway. Labels are part of the names; the
// examples have the rules that make Prometheus labels of them.
func (p *pool) report(now int64) {
	p.warnKeyless(now)
	c := &p.counters
	c.at = 0
	const label = ".pool."
	for i := range c.decisions {
		n := c.decisions[i]
		c.decisions[i] = 0
		reason := policy.Reason(i)
		c.add(n, "pinwheel_decisions_total", label, p.Name, ".policy.", p.Policy, ".reason.", reason.String())
		if reason == policy.FailoverRemoved || reason == policy.FailoverUnhealthy {
			c.add(n, "pinwheel_failovers_total", label, p.Name, ".reason.", reason.String())
		}
	}
	stats := p.store.stats
	c.add(stats.followed, "pinwheel_failovers_total", label, p.Name, ".reason.followed")
	p.store.stats = storeStats{}
	panics := c.panics
	c.panics = 0
	c.add(stats.placements, "pinwheel_placements_total", label, p.Name)
	c.add(stats.fallbacks, "pinwheel_fallbacks_total", label, p.Name)
	c.add(panics, "pinwheel_panics_total", label, p.Name)
	c.add(stats.expired, "pinwheel_expired_total", label, p.Name)
	c.add(stats.released, "pinwheel_released_total", label, p.Name)
	c.add(stats.retries, "pinwheel_cas_retries_total", label, p.Name)
	c.add(stats.repaired, "pinwheel_drift_repaired_total", label, p.Name)
	if a := p.agreement; a != nil {
		p.reportAgreement(a.stats)
		a.stats = agreementStats{}
	}
	for kind, n := range stats.faults {
		c.add(n, "pinwheel_errors_total.kind.", faultNames[kind])
	}
}

func (p *pool) reportAgreement(stats agreementStats) {
	c := &p.counters
	for kind := range stats.calls {
		for result, n := range stats.calls[kind] {
			c.add(n, "pinwheel_agreement_calls_total.pool.", p.Name, ".call.", callNames[kind], ".result.", resultNames[result])
		}
	}
	c.add(stats.kept, "pinwheel_agreement_healed_total.pool.", p.Name, ".result.kept")
	c.add(stats.moved, "pinwheel_agreement_healed_total.pool.", p.Name, ".result.moved")
	c.add(stats.fallbacks, "pinwheel_agreement_fallbacks_total.pool.", p.Name)
}

// warning paces the warnings of one kind: one a minute.
type warning struct{ last int64 } // ms; 0: there was none yet

// due reports whether it is time for another warning, and notes that it is given.
func (w *warning) due(now int64) bool {
	const period = 60_000
	if w.last != 0 && now-w.last < period {
		return false
	}
	w.last = now
	return true
}

// servedElsewhere tells the operator that the gateway does not do as it is told:
// decisions look right, and sessions lose their cache all the same.
func (p *pool) servedElsewhere(named, served string) {
	p.store.fault(faultServedElsewhere)
	if !p.elsewhere.due(milliseconds()) {
		return
	}
	proxywasm.LogWarn("pinwheel: pool " + p.Name + ": named " + named + ", and " + served + " served: is " +
		named + " a host of the gateway's cluster, spelled alike, and up?")
}

// warnKeyless tells the operator of requests without a session id: to the clients
// all is well, and the cache is lost in silence (vllm-project/vime#98).
func (p *pool) warnKeyless(now int64) {
	p.keyless += p.counters.decisions[policy.Keyless]
	if p.keyless == 0 || !p.warned.due(now) {
		return
	}
	proxywasm.LogWarn("pinwheel: pool " + p.Name + ": " + strconv.FormatUint(p.keyless, 10) +
		" requests without a session id, routed without affinity; the headers asked for are " + p.asked)
	p.keyless = 0
}

// gauges are set by the worker that holds the pool's lease, by address. A gauge is one
// value over all workers and can only be added to.
type gauges map[string]*replicaGauges

// replicaGauges are those of one address.
type replicaGauges struct {
	sessions, inflight, cooling gauge
}

// gauge is one of the gateway's.
type gauge struct {
	id    abi.Metric
	value int64 // to show
}

// of returns what to show of an address, and defines its gauges when it is first asked.
func (g gauges) of(pool, address string) *replicaGauges {
	l := g[address]
	if l == nil {
		label := ".pool." + pool + ".replica." + address
		l = &replicaGauges{
			sessions: gauge{id: abi.DefineGauge("pinwheel_sessions" + label)},
			inflight: gauge{id: abi.DefineGauge("pinwheel_inflight" + label)},
			cooling:  gauge{id: abi.DefineGauge("pinwheel_cooling" + label)},
		}
		g[address] = l
	}
	return l
}

// show sets the gateway's gauge to the value. It asks what is there: another worker may
// have led since.
func (g *gauge) show() {
	if now := g.id.Value(); now != g.value {
		g.id.Add(g.value - now)
	}
}

// setGauges shows open sessions, running requests and cool-downs for each address
// of the pool. A removed replica shows until its last session and request are gone; what
// a reset ended is no session.
func (p *pool) setGauges(running map[uint32]uint32) {
	list := p.store.view.List
	p.loads = p.loads[:0]
	for i := range list { // of one address there may be several, removed ones
		l := p.gauges.of(p.Name, list[i].Address)
		l.sessions.value, l.inflight.value, l.cooling.value = 0, 0, 0
		p.loads = append(p.loads, l)
	}
	for i := range list {
		c, l := &list[i], p.loads[i]
		if !c.Void {
			l.sessions.value += int64(c.Open)
		}
		l.inflight.value += int64(running[c.ID])
		if c.Condition() == policy.Cooling {
			l.cooling.value = 1
		}
	}
	if a := p.agreement; a != nil {
		if p.degraded.id == 0 {
			p.degraded.id = abi.DefineGauge("pinwheel_agreement_degraded.pool." + p.Name)
		}
		if p.degraded.value = 0; !a.well() {
			p.degraded.value = 1
		}
		p.degraded.show()
	}
	for _, l := range p.loads {
		l.sessions.show()
		l.inflight.show()
		l.cooling.show()
	}
}
