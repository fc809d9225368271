package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
)

// withReplicas adds the addresses of simulated replicas to a configuration that says nothing about replicas: to an empty
// one, or a JSON object without any of replicas, pools and discovery. Others stay as they are, byte for byte. With reasons
// it adds debug_headers too, if they are not mentioned.
func withReplicas(config []byte, addresses []string, reasons bool) []byte {
	fields := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(config)) > 0 && json.Unmarshal(config, &fields) != nil {
		return config
	}
	for _, key := range []string{"replicas", "pools", "discovery"} {
		if _, ok := fields[key]; ok {
			return config
		}
	}
	list, err := json.Marshal(addresses)
	if err != nil {
		return config
	}
	fields["replicas"] = list
	if _, ok := fields["debug_headers"]; reasons && !ok {
		fields["debug_headers"] = json.RawMessage("true")
	}
	filled, err := json.Marshal(fields)
	if err != nil {
		return config
	}
	return filled
}

// checkReplicas finds a replica of a Pinwheel configuration that the upstream does not have: the plugin would pin sessions
// to it, and the gateway would balance them. It looks at literal lists of addresses only, those of "replicas" and of the
// pools; what is shaped otherwise is another plugin's, or the plugin's to refuse. A host more than the list has is fine.
func checkReplicas(config []byte, clusters []gateway.Cluster) error {
	var top struct{ Replicas, Pools json.RawMessage }
	if json.Unmarshal(config, &top) != nil {
		return nil
	}
	if err := checkList(top.Replicas, clusters); err != nil {
		return err
	}
	var pools []struct {
		Cluster  string
		Replicas json.RawMessage
	}
	if json.Unmarshal(top.Pools, &pools) != nil {
		return nil
	}
	for _, p := range pools {
		serves := clusters
		for _, c := range clusters {
			if c.Name == p.Cluster {
				serves = []gateway.Cluster{c}
			}
		}
		if err := checkList(p.Replicas, serves); err != nil {
			return err
		}
	}
	return nil
}

// checkList is checkReplicas for one list, whose entries are addresses or objects with an address.
func checkList(list json.RawMessage, clusters []gateway.Cluster) error {
	var entries []json.RawMessage
	if json.Unmarshal(list, &entries) != nil {
		return nil
	}
	for _, e := range entries {
		var member struct{ Address string }
		if json.Unmarshal(e, &member.Address) != nil && json.Unmarshal(e, &member) != nil {
			continue
		}
		address, err := netip.ParseAddrPort(member.Address)
		if err == nil && !hasHost(clusters, address) {
			return fmt.Errorf("--config names %s, which is no host of %s", member.Address, describe(clusters))
		}
	}
	return nil
}

// hasHost compares as the gateway does: a host given by name is no replica that the plugin can choose.
func hasHost(clusters []gateway.Cluster, address netip.AddrPort) bool {
	for _, c := range clusters {
		for _, h := range c.Hosts {
			if host, err := netip.ParseAddrPort(h); err == nil && host == address {
				return true
			}
		}
	}
	return false
}

// describe names clusters with their first hosts: cluster a (10.0.0.1:80, 10.0.0.2:80) or cluster b (10.0.0.3:80).
func describe(clusters []gateway.Cluster) string {
	const shown = 4
	var names []string
	for _, c := range clusters {
		hosts := c.Hosts
		if len(hosts) > shown {
			hosts = append(hosts[:shown:shown], "...")
		}
		names = append(names, fmt.Sprintf("cluster %s (%s)", c.Name, strings.Join(hosts, ", ")))
	}
	return strings.Join(names, " or ")
}
