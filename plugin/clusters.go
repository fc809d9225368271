package plugin

import (
	"errors"
	"net/netip"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// Errors of clusterMembers: the answer says nothing of the pool, whose members
// stay what they are.
var (
	errNoAnswer      = errors.New("the answer is no JSON, or cut off")
	errNoCluster     = errors.New("the answer has no such cluster")
	errManyClusters  = errors.New("the gateway has several clusters: name one in \"pools\"")
	errTooManyHosts  = errors.New("the cluster has more than 1024 hosts")
	errNothingListed = errors.New("the answer lists no clusters")
)

// clusterMembers returns the hosts of the cluster in an answer to Envoy's
// /clusters?format=json. Without a name it is the one cluster besides admin. A
// cluster without hosts has no members, which is no error.
//
// What is zero Envoy leaves out, and the order of clusters changes from answer to
// answer. Hosts that are no IP address (sockets) are passed over, and so is the
// second of an address. The members do not refer to the answer. Cost: one pass,
// and one to see that it is whole; Envoy's answers have some 900 bytes for a host,
// 467 KB were seen.
// Source: envoy/admin/v3/clusters.proto; answers of Envoy 1.36.4 and 1.40.0.
func clusterMembers(answer []byte, cluster, admin string) ([]policy.Member, error) {
	if !gjson.ValidBytes(answer) {
		return nil, errNoAnswer
	}
	clusters := gjson.Get(unsafe.String(unsafe.SliceData(answer), len(answer)), "cluster_statuses")
	if !clusters.IsArray() {
		return nil, errNothingListed
	}
	found := 0
	var hosts gjson.Result
	clusters.ForEach(func(_, c gjson.Result) bool {
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
	hosts.ForEach(func(_, h gjson.Result) bool {
		address := hostAddress(h.Get("address.socket_address"))
		if address != "" && !seen[address] {
			seen[address] = true
			members = append(members, policy.Member{Address: address, Weight: hostWeight(h), State: hostState(h.Get("health_status"))})
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
func hostAddress(socket gjson.Result) string {
	port := socket.Get("port_value").Num
	ip, err := netip.ParseAddr(socket.Get("address").Str)
	if err != nil || ip.Zone() != "" || port < 1 || port > 65535 {
		return ""
	}
	return netip.AddrPortFrom(ip, uint16(port)).String()
}

func hostWeight(host gjson.Result) uint32 {
	return uint32(min(max(host.Get("weight").Num, 1), 65535))
}

// hostState is what the gateway's view of a host means to a session. A host that
// it uses only while it has no better one, and one that has left discovery and is
// kept for its running requests, take no new sessions.
func hostState(health gjson.Result) (state policy.State) {
	health.ForEach(func(k, v gjson.Result) bool {
		s := policy.Active
		switch {
		case k.Str == "eds_health_status":
			s = edsStates[v.Str]
		case v.Type == gjson.True:
			s = flagStates[k.Str]
		}
		state = max(state, s)
		return true
	})
	return state
}

// The states that are not Active, by what Envoy says. Of several the one that
// serves less counts.
var (
	edsStates = map[string]policy.State{
		"DRAINING": policy.Draining, "DEGRADED": policy.Draining,
		"UNHEALTHY": policy.Unhealthy, "TIMEOUT": policy.Unhealthy,
	}
	flagStates = map[string]policy.State{
		"failed_active_degraded_check":   policy.Draining,
		"pending_dynamic_removal":        policy.Draining,
		"failed_active_health_check":     policy.Unhealthy,
		"failed_outlier_check":           policy.Unhealthy,
		"pending_active_hc":              policy.Unhealthy,
		"excluded_via_immediate_hc_fail": policy.Unhealthy,
	}
)
