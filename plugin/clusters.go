package plugin

import (
	"errors"
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// Errors of readClusters and clusterMembers: the answer says nothing of the pool,
// whose members stay what they are.
var (
	errNoAnswer      = errors.New("the answer is no JSON, or cut off")
	errNoCluster     = errors.New("the answer has no such cluster")
	errManyClusters  = errors.New("the gateway has several clusters: name one in \"pools\"")
	errTooManyHosts  = errors.New("the cluster has more than 1024 hosts")
	errNothingListed = errors.New("the answer lists no clusters")
)

// readClusters opens an answer to Envoy's /clusters?format=json. What it returns
// refers to the answer. Cost: one pass, to see that the answer is whole; Envoy's
// have some 900 bytes for a host, and 467 KB were seen.
// Source: envoy/admin/v3/clusters.proto; answers of Envoy 1.36.4 and 1.40.0.
func readClusters(answer []byte) (clusters json.Result, err error) {
	if !json.Valid(answer) {
		return clusters, errNoAnswer
	}
	clusters = json.Get(unsafe.String(unsafe.SliceData(answer), len(answer)), "cluster_statuses")
	if !clusters.IsArray() {
		return clusters, errNothingListed
	}
	return clusters, nil
}

// clusterMembers returns the hosts of a cluster; without a name, of the one
// cluster besides admin. A cluster without hosts has no members, which is no
// error.
//
// What is zero Envoy leaves out, and the order of clusters changes from answer to
// answer. Hosts that are no IP address (sockets) are passed over, and so is the
// second of an address. The members do not refer to the answer.
func clusterMembers(clusters json.Result, cluster, admin string) ([]policy.Member, error) {
	found := 0
	var hosts json.Result
	clusters.ForEach(func(_, c json.Result) bool {
		if name := c.Get("name").Str; name == cluster && cluster != "" || cluster == "" && name != admin {
			hosts = c.Get("host_statuses")
			found++
		}
		return found == 0 || cluster == ""
	})
	switch {
	case found == 0:
		return nil, errNoCluster
	case found > 1:
		return nil, errManyClusters
	}
	var members []policy.Member
	seen := map[string]bool{}
	hosts.ForEach(func(_, h json.Result) bool {
		m := policy.Member{Weight: 1}
		h.ForEach(func(k, v json.Result) bool { // once: most of a host is its counters
			switch k.Str {
			case "address":
				m.Address = hostAddress(v.Get("socket_address"))
			case "weight":
				m.Weight = hostWeight(v.Num)
			case "health_status":
				m.State = hostState(v)
			}
			return true
		})
		if m.Address != "" && !seen[m.Address] {
			seen[m.Address] = true
			members = append(members, m)
		}
		return len(members) <= maxReplicas
	})
	if len(members) > maxReplicas {
		return nil, errTooManyHosts
	}
	return members, nil
}

// hostAddress returns a socket address as configuration and the gateway's load
// balancer spell it, "" if it is none.
func hostAddress(socket json.Result) string {
	port := socket.Get("port_value").Num
	a, ok := parseIP(socket.Get("address").Str)
	if !ok || port < 1 || port > 65535 {
		return ""
	}
	return a.withPort(uint16(port))
}

func hostWeight(weight float64) uint32 { return uint32(min(max(weight, 1), 65535)) }

// hostState is what the gateway's view of a host means to a session: of several
// things that it says the one by which the host serves less. A host that the
// gateway uses only while it has no better one, and one that has left discovery
// and is kept for its running requests, take no new sessions.
func hostState(health json.Result) (state policy.State) {
	health.ForEach(func(k, v json.Result) bool {
		said := v.Str // of eds_health_status
		if v.Type == json.True {
			said = k.Str
		}
		switch said {
		case "DRAINING", "DEGRADED", "failed_active_degraded_check", "pending_dynamic_removal":
			state = max(state, policy.Draining)
		case "UNHEALTHY", "TIMEOUT", "failed_active_health_check", "failed_outlier_check", "pending_active_hc", "excluded_via_immediate_hc_fail":
			state = policy.Unhealthy
		}
		return true
	})
	return state
}
