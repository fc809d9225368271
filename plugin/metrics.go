package plugin

import (
	"strconv"

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
	ids    map[string]abi.Metric
}

// add adds n to a counter of the gateway. It is defined when it is first named,
// at 0: of a series that begins at 1, rate and increase never see the first event.
func (c *counters) add(name string, n uint64) {
	id, ok := c.ids[name]
	if !ok {
		if c.ids == nil {
			c.ids = map[string]abi.Metric{}
		}
		id = abi.DefineCounter(name)
		c.ids[name] = id
	}
	if n != 0 { // Envoy refuses to add nothing, and abi panics
		id.Add(int64(n))
	}
}

// report hands a pool's counts to the gateway. Labels are part of the names; the
// examples have the rules that make Prometheus labels of them.
func (p *pool) report(now int64) {
	p.warnKeyless(now)
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
	p.counters.add("pinwheel_failovers_total"+label+".reason.followed", stats.followed)
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

// gauges are set by the worker that holds the pool's lease. A gauge is one value
// over all workers and can only be added to.
type gauges map[string]abi.Metric

func (g gauges) set(name string, value int64) {
	id, ok := g[name]
	if !ok {
		id = abi.DefineGauge(name)
		g[name] = id
	}
	if now := id.Value(); now != value {
		id.Add(value - now)
	}
}

// load is what the gauges show of one address.
type load struct{ sessions, inflight int64 }

// setGauges shows open sessions, running requests and cool-downs for each address
// of the pool. A removed replica shows until its last session and request are gone; what
// a reset ended is no session.
func (p *pool) setGauges(running map[uint32]uint32) {
	byAddress := make(map[string]load, len(p.store.view.List))
	cooling := map[string]int64{}
	for i := range p.store.view.List {
		c := &p.store.view.List[i]
		l := byAddress[c.Address]
		if !c.Void {
			l.sessions += int64(c.Open)
		}
		l.inflight += int64(running[c.ID])
		byAddress[c.Address] = l
		if c.Condition() == policy.Cooling {
			cooling[c.Address] = 1
		}
	}
	for address, l := range byAddress {
		label := ".pool." + p.Name + ".replica." + address
		p.gauges.set("pinwheel_sessions"+label, l.sessions)
		p.gauges.set("pinwheel_inflight"+label, l.inflight)
		p.gauges.set("pinwheel_cooling"+label, cooling[address])
	}
}
