package plugin

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// counters are the totals of one filter in one worker that were not reported
// yet. They are reported at ticks: a host call per turn would cost more than the
// decision.
type counters struct {
	decisions [policy.NumReasons]uint64
	// panics are decisions at which no replica was eligible.
	panics uint64
	ids    map[string]proxywasm.MetricCounter
}

// add adds n to a counter of the gateway, which is defined when it first counts.
func (c *counters) add(name string, n uint64) {
	if n == 0 { // Envoy refuses to add nothing, and the SDK panics
		return
	}
	id, ok := c.ids[name]
	if !ok {
		if c.ids == nil {
			c.ids = map[string]proxywasm.MetricCounter{}
		}
		id = proxywasm.DefineCounterMetric(name)
		c.ids[name] = id
	}
	id.Increment(n)
}

// report hands a pool's counts to the gateway. Labels are part of the names; the
// examples have the rules that make Prometheus labels of them.
func (p *pool) report() {
	label := ".pool." + p.Name
	for i := range p.counters.decisions {
		n := p.counters.decisions[i]
		p.counters.decisions[i] = 0
		reason := policy.Reason(i)
		p.counters.add("pinwheel_decisions_total"+label+".policy."+p.Policy+".reason."+reason.String(), n)
		if reason == policy.FailoverRemoved || reason == policy.FailoverUnhealthy {
			p.counters.add("pinwheel_failovers_total"+label+".reason."+reason.String(), n)
		}
	}
	stats := p.store.stats
	p.store.stats = storeStats{}
	p.counters.add("pinwheel_placements_total"+label, stats.placements)
	p.counters.add("pinwheel_fallbacks_total"+label, stats.fallbacks)
	p.counters.add("pinwheel_panics_total"+label, p.counters.panics)
	p.counters.panics = 0
	p.counters.add("pinwheel_expired_total"+label, stats.expired)
	p.counters.add("pinwheel_released_total"+label, stats.released)
	p.counters.add("pinwheel_cas_retries_total"+label, stats.retries)
	p.counters.add("pinwheel_drift_repaired_total"+label, stats.repaired)
	for kind, n := range stats.faults {
		p.counters.add("pinwheel_errors_total.kind."+faultNames[kind], n)
	}
}

// gauges are set by the worker that holds the pool's lease. A gauge is one value
// over all workers and can only be added to.
type gauges map[string]proxywasm.MetricGauge

func (g gauges) set(name string, value int64) {
	id, ok := g[name]
	if !ok {
		id = proxywasm.DefineGaugeMetric(name)
		g[name] = id
	}
	if now := id.Value(); now != value {
		id.Add(value - now)
	}
}

// load is what the gauges show of one address.
type load struct{ sessions, inflight int64 }

// setGauges shows open sessions and running requests for each address of the
// pool. A removed replica shows until its last session and request are gone.
func (p *pool) setGauges(running map[uint32]uint32) {
	byAddress := make(map[string]load, len(p.store.view.List))
	for i := range p.store.view.List {
		c := &p.store.view.List[i]
		l := byAddress[c.Address]
		l.sessions += int64(c.Open)
		l.inflight += int64(running[c.ID])
		byAddress[c.Address] = l
	}
	for address, l := range byAddress {
		label := ".pool." + p.Name + ".replica." + address
		p.gauges.set("pinwheel_sessions"+label, l.sessions)
		p.gauges.set("pinwheel_inflight"+label, l.inflight)
	}
}
