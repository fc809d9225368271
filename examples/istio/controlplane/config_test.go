package controlplane

import (
	"errors"
	"slices"
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	rbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	overridehost "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/override_host/v3"
	httpoptions "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	wasmconfig "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"istio.io/istio/pilot/pkg/config/kube/crd"
	"istio.io/istio/pilot/test/xdstest"
	"istio.io/istio/pkg/config/schema/collections"
	_ "istio.io/istio/pkg/config/validation"

	"github.com/pinwheel-proxy/pinwheel/plugin"
)

const (
	target      = "x-gateway-destination-endpoint"
	clusterName = "outbound|8000||vllm.llm.svc.cluster.local"
)

// policy lets requests with a header in, and no others. That is Istio's RBAC filter.
const policy = `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: llm, namespace: llm}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: llm}]
  rules: [{when: [{key: "request.headers[x-user]", values: ["*"]}]}]
`

func unpack[T proto.Message](t *testing.T, any *anypb.Any, m T) T {
	t.Helper()
	if err := any.UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// connectionManager is that of the listener on port 80.
func connectionManager(t *testing.T, s sent) *hcm.HttpConnectionManager {
	t.Helper()
	l := xdstest.ExtractListener("0.0.0.0_80", s.listeners)
	if l == nil {
		t.Fatalf("no listener on port 80 among %v", xdstest.ExtractListenerNames(s.listeners))
	}
	return xdstest.ExtractHTTPConnectionManager(t, l.FilterChains[0])
}

// The files pass the validation that istiod's webhook runs.
func TestIstioAcceptsTheFiles(t *testing.T) {
	configs, unknown, err := crd.ParseInputs(userFile(t, "pinwheel.yaml"))
	if err != nil || len(unknown) != 0 || len(configs) != 2 {
		t.Fatalf("%d, %v, %v", len(configs), unknown, err)
	}
	for _, c := range configs {
		schema, ok := collections.All.FindByGroupVersionAliasesKind(c.GroupVersionKind)
		if !ok {
			t.Fatalf("no %v", c.GroupVersionKind)
		}
		// Every EnvoyFilter gets one warning, and no other is expected.
		warning, err := schema.ValidateConfig(c)
		if err != nil || (warning != nil) != (c.GroupVersionKind.Kind == "EnvoyFilter") ||
			warning != nil && (strings.Contains(warning.Error(), "\n") || !strings.Contains(warning.Error(), "internal implementation details")) {
			t.Errorf("%s: %v, %v", c.Name, warning, err)
		}
	}
}

// The phase STATS is behind who may send a request, and in front of the router; AUTHZ is in front of the former.
func TestWhereThePluginRuns(t *testing.T) {
	objects := strings.Join([]string{userFile(t, "llm.yaml"), gatewayPod, modelPods(8000, "10.0.0.1")}, "\n---\n")
	for phase, after := range map[string]bool{"STATS": true, "AUTHZ": false} {
		config := replaced(t, userFile(t, "pinwheel.yaml"), "phase: STATS", "phase: "+phase)
		names := []string{}
		for _, f := range connectionManager(t, push(t, pilot(t, objects, config+"\n---\n"+policy))).HttpFilters {
			names = append(names, f.Name)
		}
		at := slices.IndexFunc(names, func(n string) bool { return strings.Contains(n, "llm.pinwheel") })
		authz, router := slices.Index(names, "envoy.filters.http.rbac"), slices.Index(names, "envoy.filters.http.router")
		t.Logf("%s: %v", phase, names)
		if at < 0 || authz < 0 || router < at || (at > authz) != after {
			t.Errorf("%s: Pinwheel is %d, authorization %d, the router %d of %v", phase, at, authz, router, names)
		}
	}
}

// What is said on the page about each part of the configuration, for a Service with and without an address, and for
// both kinds of gateway.
func TestWhatTheGatewayGets(t *testing.T) {
	service := userFile(t, "llm.yaml")
	headless := replaced(t, service, "  selector: {app: vllm}", "  clusterIP: None\n  selector: {app: vllm}")
	for name, c := range map[string]struct{ objects, config string }{
		"Gateway API":      {service, userFile(t, "pinwheel.yaml")},
		"headless Service": {headless, userFile(t, "pinwheel.yaml")},
		"Istio's Gateway":  classic(t),
	} {
		t.Run(name, func(t *testing.T) {
			s := push(t, pilot(t, strings.Join([]string{c.objects, gatewayPod, modelPods(8000, "10.0.0.1", "10.0.0.2")}, "\n---\n"), c.config))
			manager := connectionManager(t, s)
			if len(manager.EarlyHeaderMutationExtensions) != 1 {
				t.Errorf("at the door: %v", manager.EarlyHeaderMutationExtensions)
			}
			checkRoutes(t, s)
			checkCluster(t, xdstest.ExtractCluster(clusterName, s.clusters))
			hosts := xdstest.ExtractLoadAssignments(s.endpoints)[clusterName]
			if slices.Sort(hosts); !slices.Equal(hosts, []string{"10.0.0.1:8000", "10.0.0.2:8000"}) {
				t.Errorf("hosts: %v", hosts)
			}
			checkPlugin(t, s)
		})
	}
}

func checkRoutes(t *testing.T, s sent) {
	t.Helper()
	routes := 0
	for _, configuration := range s.routes {
		for _, host := range configuration.VirtualHosts {
			for _, r := range host.Routes {
				if r.GetRoute().GetCluster() != clusterName {
					continue
				}
				routes++
				retry := r.GetRoute().RetryPolicy
				if !host.IncludeAttemptCountInResponse || retry.GetRetryOn() != "connect-failure,refused-stream,reset" ||
					retry.GetNumRetries().GetValue() != 2 || r.GetRoute().Timeout == nil || r.GetRoute().Timeout.AsDuration() != 0 {
					t.Errorf("%v", host)
				}
			}
		}
	}
	if routes != 1 {
		t.Errorf("%d routes to the cluster, in %v", routes, s.routes)
	}
}

func checkCluster(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	policies := c.GetLoadBalancingPolicy().GetPolicies()
	if len(policies) != 1 || c.GetType() != cluster.Cluster_EDS || c.GetLbPolicy() != cluster.Cluster_CLUSTER_PROVIDED {
		t.Fatalf("%v", c)
	}
	override := unpack(t, policies[0].TypedExtensionConfig.TypedConfig, &overridehost.OverrideHost{})
	if len(override.OverrideHostSources) != 1 || override.OverrideHostSources[0].Header != target {
		t.Errorf("%v", override)
	}
	options := unpack(t, c.TypedExtensionProtocolOptions["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"], &httpoptions.HttpProtocolOptions{})
	if len(options.HttpFilters) != 2 || options.HttpFilters[0].Name != "pinwheel.strip" {
		t.Errorf("%v", options)
	}
}

// An image that cannot be fetched, or is another than its digest says, lets no request through.
func TestNoImageNoRequests(t *testing.T) {
	objects := strings.Join([]string{userFile(t, "llm.yaml"), gatewayPod, modelPods(8000, "10.0.0.1")}, "\n---\n")
	s := push(t, pilot(t, objects, userFile(t, "pinwheel.yaml")))
	if len(s.extensions) != 1 {
		t.Fatalf("%v", s.extensions)
	}
	given := agent(t, s.extensions[0], image{err: errors.New("no such image")})
	if deny := unpack(t, given.TypedConfig, &rbac.RBAC{}); deny.Rules == nil || len(deny.Rules.Policies) != 0 || deny.Rules.Action != 0 {
		t.Errorf("%v", deny)
	}
}

// checkPlugin looks at the filter's configuration, which comes as an extension: a text that Pinwheel accepts.
func checkPlugin(t *testing.T, s sent) {
	t.Helper()
	if len(s.extensions) != 1 {
		t.Fatalf("%v", s.extensions)
	}
	config := unpack(t, s.extensions[0].TypedConfig, &wasm.Wasm{}).Config
	text := unpack(t, config.Configuration, &wrapperspb.StringValue{}).Value
	parsed, err := plugin.ParseConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Pools) != 1 || parsed.Pools[0].Cluster != clusterName {
		t.Errorf("%+v", parsed.Pools)
	}
	remote := config.GetVmConfig().GetCode().GetRemote()
	if config.FailurePolicy != wasmconfig.FailurePolicy_FAIL_RELOAD || config.GetVmConfig().VmId != "" ||
		!strings.HasPrefix(remote.GetHttpUri().GetUri(), "oci://") || len(remote.GetSha256()) != 64 {
		t.Errorf("%v", config)
	}
}
