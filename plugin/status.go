package plugin

import (
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/build/version"
	"github.com/pinwheel-proxy/pinwheel/plugin/json"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// status says what the pools look like now, in a line for each replica. Text is
// made by joining strings: each append would be another 250 bytes of module.
func (f *filter) status(pools []*pool, now int64) string {
	var sum load
	placements := uint64(0)
	body := []byte(`{"policy":"` + f.config.Policy + `","pools":[`)
	for i, p := range pools {
		between := ","
		if i == 0 {
			between = ""
		}
		l := load{}
		body, l = p.appendStatus(append(body, between...), now)
		sum = sum.plus(l)
		placements += p.store.view.Placements
	}
	return string(body) + "],\n\"totals\":{" + sum.json() +
		`,"placements":` + decimal(placements) +
		`,"max_sessions":` + decimal(uint64(len(pools)*f.config.Session.MaxSessions)) +
		`},"versions":{"pinwheel":"` + version.Number + `","abi":"0.2.1","schema":` + decimal(schemaVersion) + "}}"
}

// appendStatus appends the pool, and returns what its replicas add up to.
func (p *pool) appendStatus(body []byte, now int64) (_ []byte, sum load) {
	running := p.requests(now)
	a := p.agreement
	if a != nil {
		a.read()
	}
	head := `{"name":"` + p.Name + `","cluster":` + quoteJSON(p.Cluster) + `,"policy":"` + p.Policy + `","replicas":[`
	for i := range p.store.view.List {
		c, l := &p.store.view.List[i], p.loadOf(i, running)
		if c.State == policy.Removed && l == (load{}) {
			continue
		}
		sum = sum.plus(l)
		body = append(body, head+"\n{\"address\":"+quoteJSON(c.Address)+
			`,"state":"`+c.Condition().String()+
			`","health":{`+p.healthJSON(&c.Health, now)+
			`},"weight":`+decimal(uint64(c.Weight))+
			`,`+l.json()+
			`,"placements":`+decimal(c.Placements)+
			drainJSON(c, l)+a.sessionsJSON(c.ID)+`}`...)
		head = ","
	}
	if head != "," {
		body = append(body, head...)
	}
	return append(body, "]"+a.json(now)+"}"...), sum
}

// sessionsJSON says how many sessions of all gateways have the replica for their home. a may be nil.
func (a *agreement) sessionsJSON(id uint32) string {
	if a == nil {
		return ""
	}
	return `,"fleet_sessions":` + decimal(uint64(*a.state.sessions(id)))
}

// json says how the agreement is. a may be nil.
func (a *agreement) json(now int64) string {
	if a == nil {
		return ""
	}
	state, breaker, degraded, polled := "ok", "closed", int64(0), int64(-1)
	if !a.well() {
		state, breaker, degraded = "degraded", "open", max(now-a.state.down, 0)
	}
	if a.state.polled != 0 {
		polled = max(now-a.state.polled, 0)
	}
	return `,"agreement":{"kind":"` + a.Kind + `","state":"` + state + `","degraded_ms":` + decimal(uint64(degraded)) +
		`,"breaker":"` + breaker + `","polled_ms":` + strconv.FormatInt(polled, 10) + "}"
}

// requests returns the running requests of all workers by replica: this one's own
// as of now, others' as of their last tick.
func (p *pool) requests(now int64) map[uint32]uint32 {
	running, err := p.inflight.total(now)
	if err != nil {
		p.store.fault(faultSharedData)
	}
	return running
}

// load is what runs at one replica, or at several.
type load struct{ sessions, inflight int64 }

// loadOf returns the load of the replica at i. What still runs on a void one runs
// at the member of that address, and is shown there.
func (p *pool) loadOf(i int, running map[uint32]uint32) (l load) {
	list := p.store.view.List
	c := &list[i]
	if c.Void {
		return l
	}
	l = load{int64(c.Open), int64(running[c.ID])}
	for j := range list {
		if o := &list[j]; o.Void && o.Address == c.Address && c.State != policy.Removed {
			l.inflight += int64(running[o.ID])
		}
	}
	return l
}

func (l load) plus(m load) load { return load{l.sessions + m.sessions, l.inflight + m.inflight} }

func (l load) json() string {
	return `"open_sessions":` + decimal(uint64(l.sessions)) + `,"inflight":` + decimal(uint64(l.inflight))
}

// healthJSON says what the replica's answers say: failures in a row, the length of
// its cool-down, 0 if there is none, and how long that still lasts.
func (p *pool) healthJSON(h *policy.Health, now int64) string {
	// A cool-down that ended unproven is one failure from the next.
	failures := min(uint64(h.Failures), uint64(max(p.store.health.Failures, 1))-1)
	return `"failures":` + decimal(failures) + `,"cooldown_ms":` + decimal(uint64(h.Cooldown)) +
		`,"remaining_ms":` + decimal(uint64(max(h.Until-now, 0)))
}

// drainJSON says whether an operator drains the replica, and, if it drains by
// whatever order, whether nothing is left on it.
func drainJSON(c *policy.Replica, l load) string {
	text := `,"drain":` + strconv.FormatBool(c.Drained)
	if c.Drained || c.State == policy.Draining {
		text += `,"empty":` + strconv.FormatBool(l == load{})
	}
	return text
}

//go:noinline
func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func quoteJSON(s string) string { return string(json.AppendString(nil, s)) }
