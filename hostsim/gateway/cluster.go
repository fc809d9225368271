package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Cluster is a named set of upstream hosts.
type Cluster struct {
	// Name is what the plugin reads as the property xds.cluster_name. Required.
	Name string
	// Hosts are addresses as host:port, IPv6 in brackets. Empty means that every request is answered 503.
	Hosts []string
	// HTTP2 says that the hosts speak HTTP/2 without TLS, as gRPC servers do.
	HTTP2 bool
}

func (c *Cluster) validate() error {
	if c.Name == "" {
		return errors.New("no name")
	}
	for _, h := range c.Hosts {
		if err := ValidateAddress(h); err != nil {
			return err
		}
	}
	return nil
}

// ValidateAddress reports whether a is a host:port to which one can connect: a name or an IP address (IPv6 in brackets),
// and a port from 1 to 65535 without leading zeros.
func ValidateAddress(a string) error {
	host, port, err := net.SplitHostPort(a)
	if err != nil || host == "" {
		return fmt.Errorf("address %q is not HOST:PORT (IPv6 in brackets)", a)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("address %q: port %q is not a number from 1 to 65535", a, port)
	}
	return nil
}

// cluster is a Cluster at work.
type cluster struct {
	name   string
	hosts  []string
	known  map[string]*host // by address
	http2  bool
	cursor atomic.Uint64
}

func newCluster(c Cluster) *cluster {
	hosts, known := make([]string, len(c.Hosts)), map[string]*host{}
	for i, h := range c.Hosts {
		hosts[i] = canonical(h)
		known[hosts[i]] = &host{address: hosts[i]}
	}
	return &cluster{name: c.Name, hosts: hosts, known: known, http2: c.HTTP2}
}

// clustersByName checks clusters, at least one, and makes them ready. The error wraps ErrConfig.
func clustersByName(clusters []Cluster) (map[string]*cluster, error) {
	if len(clusters) == 0 {
		return nil, fmt.Errorf("%w: no clusters", ErrConfig)
	}
	byName := map[string]*cluster{}
	for i, c := range clusters {
		if err := c.validate(); err != nil {
			return nil, fmt.Errorf("%w: Clusters[%d]: %w", ErrConfig, i, err)
		}
		if byName[c.Name] != nil {
			return nil, fmt.Errorf("%w: Clusters[%d]: the name %q is taken", ErrConfig, i, c.Name)
		}
		byName[c.Name] = newCluster(c)
	}
	return byName, nil
}

// canonical writes an IP address the one way in which Envoy compares and reports it; names stay as they are.
func canonical(address string) string {
	if ap, err := netip.ParseAddrPort(address); err == nil {
		return ap.String()
	}
	return address
}

// attempts returns the hosts to try for a request, at most limit: those that the plugin's list names and the cluster has,
// in the list's order, then the others round robin. Entries that the cluster does not know are passed over and cost no
// attempt, spaces and empty entries mean nothing. Source: runs of override_host on Envoy 1.36.4 and 1.40.0.
func (c *cluster) attempts(list string, limit int) []string {
	tries := make([]string, 0, limit)
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if len(tries) < limit && slices.Contains(c.hosts, entry) && !slices.Contains(tries, entry) {
			tries = append(tries, entry)
		}
	}
	if len(tries) == limit || len(tries) == len(c.hosts) {
		return tries
	}
	// The cursor moves with each request that depends on it, but not for what is only kept in reserve behind the list.
	start := c.cursor.Load()
	if len(tries) == 0 {
		start = c.cursor.Add(1) - 1
	}
	for i := range uint64(len(c.hosts)) {
		h := c.hosts[(start+i)%uint64(len(c.hosts))]
		if len(tries) < limit && !slices.Contains(tries, h) {
			tries = append(tries, h)
		}
	}
	return tries
}

// clusterFor finds the cluster of a request by its authority.
func (g *Gateway) clusterFor(authority string) *cluster {
	if c := g.clusters[authority]; c != nil {
		return c
	}
	if host, _, err := net.SplitHostPort(authority); err == nil && g.clusters[host] != nil {
		return g.clusters[host]
	}
	return g.first
}
