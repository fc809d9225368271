package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	agentwasm "istio.io/istio/pkg/wasm"
)

// istioOnly are filters that Istio's build of Envoy has and stock Envoy lacks: HTTP filters, and network filters of
// clusters. They are taken out, and nothing else. They tell the two ends of a connection about each other, and decide
// nothing about a request.
var istioOnly = []string{"istio.alpn", "istio.metadata_exchange"}

// files is a stock Envoy's configuration, made of what Istio sent.
type files struct {
	dir string
	// port is where it listens; admin is its admin interface's.
	port, admin int
	// removed are the filters that were taken out, each once, sorted.
	removed []string
}

func mustAny(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// write replaces a file by a rename, which is when Envoy reads it again.
func write(t *testing.T, name string, m proto.Message) {
	t.Helper()
	text, err := protojson.Marshal(m)
	if err == nil {
		err = os.WriteFile(name+".next", text, 0o666)
	}
	if err == nil {
		err = os.Rename(name+".next", name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// hosts writes what Istio sends as endpoints, one file for each cluster.
func (f *files) hosts(t *testing.T, s sent) {
	t.Helper()
	for i, e := range s.endpoints {
		write(t, f.hostsFile(e.ClusterName), &discovery.DiscoveryResponse{VersionInfo: fmt.Sprint(i), Resources: []*anypb.Any{mustAny(t, e)}})
	}
}

func (f *files) hostsFile(cluster string) string {
	return filepath.Join(f.dir, fmt.Sprintf("%x.json", cluster))
}

// bootstrap writes the whole: listener, routes and clusters as they came, the extension in its place as Istio's agent hands
// it to Envoy, and the cluster prometheus_stats of Istio's bootstrap.
func (f *files) bootstrap(t *testing.T, s sent, module string) string {
	t.Helper()
	b := &bootstrap.Bootstrap{
		Node:  &core.Node{Id: "llm-istio-1.llm", Cluster: "llm-istio.llm"},
		Admin: &bootstrap.Admin{Address: address("127.0.0.1", f.admin)},
		StaticResources: &bootstrap.Bootstrap_StaticResources{Clusters: []*cluster.Cluster{{
			Name:                 "prometheus_stats",
			ConnectTimeout:       durationpb.New(250e6),
			ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_STATIC},
			LoadAssignment: &endpoint.ClusterLoadAssignment{ClusterName: "prometheus_stats", Endpoints: []*endpoint.LocalityLbEndpoints{{
				LbEndpoints: []*endpoint.LbEndpoint{{HostIdentifier: &endpoint.LbEndpoint_Endpoint{
					Endpoint: &endpoint.Endpoint{Address: address("127.0.0.1", f.admin)}}}},
			}}},
		}}},
	}
	for _, c := range s.clusters {
		c = proto.Clone(c).(*cluster.Cluster)
		c.Filters = slices.DeleteFunc(c.Filters, func(x *cluster.Filter) bool { return f.istios(x.Name) })
		// For pods with a sidecar, and with certificates that Istio's agent gives to Envoy. Those of the test have none.
		c.TransportSocketMatches = slices.DeleteFunc(c.TransportSocketMatches, func(m *cluster.Cluster_TransportSocketMatch) bool { return m.Name == "tlsMode-istio" })
		if c.GetType() == cluster.Cluster_EDS {
			c.EdsClusterConfig.EdsConfig = &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3,
				ConfigSourceSpecifier: &core.ConfigSource_PathConfigSource{PathConfigSource: &core.PathConfigSource{Path: f.hostsFile(c.Name)}}}
		}
		b.StaticResources.Clusters = append(b.StaticResources.Clusters, c)
	}
	b.StaticResources.Listeners = []*listener.Listener{f.listener(t, s, module)}
	name := filepath.Join(f.dir, "bootstrap.json")
	write(t, name, b)
	return name
}

func (f *files) listener(t *testing.T, s sent, module string) *listener.Listener {
	t.Helper()
	manager := proto.Clone(connectionManager(t, s)).(*hcm.HttpConnectionManager)
	for _, r := range s.routes {
		if r.Name == manager.GetRds().GetRouteConfigName() {
			manager.RouteSpecifier = &hcm.HttpConnectionManager_RouteConfig{RouteConfig: r}
			break
		}
	}
	if manager.GetRouteConfig() == nil {
		t.Fatalf("no routes %s", manager.GetRds().GetRouteConfigName())
	}
	manager.HttpFilters = slices.DeleteFunc(manager.HttpFilters, func(h *hcm.HttpFilter) bool { return f.istios(h.Name) })
	for _, h := range manager.HttpFilters {
		if h.GetConfigDiscovery() == nil {
			continue
		}
		i := slices.IndexFunc(s.extensions, func(e *core.TypedExtensionConfig) bool { return e.Name == h.Name })
		if i < 0 {
			t.Fatalf("no extension %s", h.Name)
		}
		h.ConfigType = &hcm.HttpFilter_TypedConfig{TypedConfig: agent(t, s.extensions[i], image{file: module}).TypedConfig}
	}
	for _, l := range s.listeners {
		if l.Name != "0.0.0.0_80" {
			continue
		}
		l = proto.Clone(l).(*listener.Listener)
		l.Address = address("127.0.0.1", f.port)
		filters := l.FilterChains[0].Filters
		filters[len(filters)-1].ConfigType = &listener.Filter_TypedConfig{TypedConfig: mustAny(t, manager)}
		return l
	}
	t.Fatal("no listener")
	return nil
}

// istios tells whether a filter is one of istioOnly, and remembers it.
func (f *files) istios(name string) bool {
	if !slices.Contains(istioOnly, name) {
		return false
	}
	if at, found := slices.BinarySearch(f.removed, name); !found {
		f.removed = slices.Insert(f.removed, at, name)
	}
	return true
}

// image stands in for the agent's cache of fetched modules: a file, or a failure.
type image struct {
	file string
	err  error
}

func (i image) Get(string, agentwasm.GetOptions) (string, error) { return i.file, i.err }
func (i image) Cleanup()                                         {}

// agent is what Istio's agent, beside the gateway's Envoy, makes of an extension before Envoy sees it: the module comes
// from a file, and variables that were meant for the agent are gone.
func agent(t *testing.T, e *core.TypedExtensionConfig, i image) *core.TypedExtensionConfig {
	t.Helper()
	resources := []*anypb.Any{mustAny(t, e)}
	if err := agentwasm.MaybeConvertWasmExtensionConfig(resources, i); err != nil {
		t.Fatal(err)
	}
	return unpack(t, resources[0], &core.TypedExtensionConfig{})
}

func address(ip string, port int) *core.Address {
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{Address: ip,
		PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(port)}}}}
}
