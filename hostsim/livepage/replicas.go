package livepage

import (
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// shown bounds the replicas that a page lists.
const shown = 256

// replica is one upstream host as the page shows it.
type replica struct {
	Cluster  string `json:"cluster"`
	Address  string `json:"address"`
	Running  int64  `json:"running"`
	Requests int64  `json:"requests"`
	// State is failing for one whose last requests had no answer, cooling where the plugin says so, else ok, or idle for one
	// that was never asked.
	State string `json:"state"`
	// Failures is how many requests in a row had no answer.
	Failures int64 `json:"failures"`
	// Gauges are the plugin's about this address: those named NAME.anything.ADDRESS, summed by NAME, such as
	// pinwheel_sessions.pool.default.replica.10.0.0.1:80.
	Gauges map[string]int64 `json:"gauges"`
	// Cached are those of its PromptTokens that it had cached.
	Cached       int64 `json:"cached"`
	PromptTokens int64 `json:"promptTokens"`
}

// replicas asks the gateway and the plugin.
func (p *Page) replicas() []replica {
	upstreams := p.config.Upstreams()
	upstreams = upstreams[:min(len(upstreams), shown)]
	gauges := map[string]map[string]int64{}
	for _, u := range upstreams {
		gauges[u.Address] = map[string]int64{}
	}
	if p.config.Metrics != nil {
		for _, m := range p.config.Metrics() {
			name, address, ok := cutAddress(m.Name, gauges)
			if ok && m.Kind == hostsim.MetricGauge {
				gauges[address][name] += m.Signed()
			}
		}
	}
	out := make([]replica, 0, len(upstreams))
	for _, u := range upstreams {
		r := replica{Cluster: u.Cluster, Address: u.Address, Running: u.Running, Requests: u.Requests, Failures: u.Failures,
			State: "ok", Gauges: gauges[u.Address]}
		switch {
		case u.Failures > 0:
			r.State = "failing"
		case cooling(r.Gauges):
			r.State = "cooling"
		case u.Requests == 0:
			r.State = "idle"
		}
		if p.config.PromptTokens != nil {
			r.Cached, r.PromptTokens = p.config.PromptTokens(u.Address)
		}
		out = append(out, r)
	}
	return out
}

// cutAddress splits a gauge's name into what is before its first dot and the address behind another one. An address has
// dots itself: each dot may be the one.
func cutAddress(name string, addresses map[string]map[string]int64) (metric, address string, ok bool) {
	metric, rest, _ := strings.Cut(name, ".")
	for rest != "" {
		if _, known := addresses[rest]; known {
			return metric, rest, true
		}
		_, rest, _ = strings.Cut(rest, ".")
	}
	return "", "", false
}

// cooling reports a gauge that says the plugin leaves the replica alone for a while.
func cooling(gauges map[string]int64) bool {
	for name, value := range gauges {
		if strings.HasSuffix(name, "_cooling") && value > 0 {
			return true
		}
	}
	return false
}
