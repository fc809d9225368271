package controlplane

import (
	"fmt"
	"os"
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pilot/test/xdstest"
)

// userFile reads a file that users apply.
func userFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// replaced changes a text that must be there.
func replaced(t *testing.T, text, from, to string) string {
	t.Helper()
	if !strings.Contains(text, from) {
		t.Fatalf("no %q", from)
	}
	return strings.ReplaceAll(text, from, to)
}

// gatewayPod is what Istio makes of the Gateway llm: a Service and the pod that this test's Envoy is.
const gatewayPod = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: istio}
spec: {controllerName: istio.io/gateway-controller}
---
apiVersion: v1
kind: Service
metadata: {name: llm-istio, namespace: llm}
spec:
  clusterIP: 10.96.0.10
  selector: {gateway.networking.k8s.io/gateway-name: llm}
  ports: [{name: http, port: 80, targetPort: 80}]
---
apiVersion: v1
kind: Pod
metadata: {name: llm-istio-1, namespace: llm, labels: {gateway.networking.k8s.io/gateway-name: llm, istio: ingressgateway}}
spec: {containers: [{name: istio-proxy, image: proxy}]}
status: {phase: Running, podIP: 10.0.0.99, podIPs: [{ip: 10.0.0.99}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: llm-istio-1, namespace: llm, labels: {kubernetes.io/service-name: llm-istio}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.99], conditions: {ready: true}, targetRef: {kind: Pod, name: llm-istio-1, namespace: llm}}]
ports: [{name: http, port: 80, protocol: TCP}]`

// modelPods are the pods of the Service vllm, and the slice that names them, at the addresses and one port.
func modelPods(port int, addresses ...string) string {
	pods, endpoints := "", []string{}
	for i, a := range addresses {
		pods += fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: vllm-%d, namespace: llm, labels: {app: vllm}}
spec: {containers: [{name: vllm, image: vllm}]}
status: {phase: Running, podIP: %s, podIPs: [{ip: %s}], conditions: [{type: Ready, status: "True"}]}
---`, i, a, a)
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%s], conditions: {ready: true}, targetRef: {kind: Pod, name: vllm-%d, namespace: llm}}", a, i))
	}
	return pods + fmt.Sprintf(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: vllm-1, namespace: llm, labels: {kubernetes.io/service-name: vllm}}
addressType: IPv4
endpoints: [%s]
ports: [{name: http, port: %d, protocol: TCP}]`, strings.Join(endpoints, ", "), port)
}

// sent is what Istio sends to the gateway.
type sent struct {
	listeners  []*listener.Listener
	clusters   []*cluster.Cluster
	routes     []*route.RouteConfiguration
	endpoints  []*endpoint.ClusterLoadAssignment
	extensions []*core.TypedExtensionConfig
}

// pilot runs Istio's control plane over objects of Kubernetes and configuration of Istio.
func pilot(t *testing.T, objects, config string) *xds.FakeDiscoveryServer {
	t.Helper()
	return xds.NewFakeDiscoveryServer(t, xds.FakeOptions{KubernetesObjectString: objects, ConfigString: config})
}

// push is all that the gateway's proxy gets, held to the rules of Envoy's API as Istio's own tests do.
func push(t *testing.T, s *xds.FakeDiscoveryServer) sent {
	t.Helper()
	labels := map[string]string{"gateway.networking.k8s.io/gateway-name": "llm", "istio": "ingressgateway"}
	proxy := s.SetupProxy(&model.Proxy{
		Type: model.Router, ConfigNamespace: "llm", IPAddresses: []string{"10.0.0.99"}, ID: "llm-istio-1.llm", Labels: labels,
		Metadata: &model.NodeMetadata{Namespace: "llm", Labels: labels, IstioVersion: "1.31.0", ClusterID: "Kubernetes"},
	})
	out := sent{listeners: s.Listeners(proxy), clusters: s.Clusters(proxy), routes: s.Routes(proxy), endpoints: s.Endpoints(proxy)}
	names := []string{}
	for _, l := range out.listeners {
		for _, chain := range l.FilterChains {
			for _, f := range xdstest.ExtractHTTPConnectionManager(t, chain).HttpFilters {
				if f.GetConfigDiscovery() != nil {
					names = append(names, f.Name)
				}
			}
		}
	}
	out.extensions = s.ConfigGen.BuildExtensionConfiguration(proxy, s.PushContext(), names, nil)
	xdstest.ValidateListeners(t, out.listeners)
	xdstest.ValidateClusters(t, out.clusters)
	xdstest.ValidateRouteConfigurations(t, out.routes)
	return out
}
