package apis

import (
	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"
	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"
)

// istioKinds are the specifications of Istio's resources, by group and kind.
var istioKinds = map[string]proto.Message{
	"extensions.istio.io/WasmPlugin":          &extensions.WasmPlugin{},
	"networking.istio.io/EnvoyFilter":         &networking.EnvoyFilter{},
	"networking.istio.io/DestinationRule":     &networking.DestinationRule{},
	"networking.istio.io/Gateway":             &networking.Gateway{},
	"networking.istio.io/VirtualService":      &networking.VirtualService{},
	"networking.istio.io/ServiceEntry":        &networking.ServiceEntry{},
	"security.istio.io/AuthorizationPolicy":   &security.AuthorizationPolicy{},
	"security.istio.io/PeerAuthentication":    &security.PeerAuthentication{},
	"security.istio.io/RequestAuthentication": &security.RequestAuthentication{},
	"telemetry.istio.io/Telemetry":            &telemetry.Telemetry{},
	"extensions.istio.io/TrafficExtension":    &extensions.TrafficExtension{},
}

// patched are the messages that an EnvoyFilter's applyTo patches.
var patched = map[string]proto.Message{
	"LISTENER":            &listener.Listener{},
	"LISTENER_FILTER":     &listener.ListenerFilter{},
	"FILTER_CHAIN":        &listener.FilterChain{},
	"NETWORK_FILTER":      &listener.Filter{},
	"HTTP_FILTER":         &hcm.HttpFilter{},
	"ROUTE_CONFIGURATION": &route.RouteConfiguration{},
	"VIRTUAL_HOST":        &route.VirtualHost{},
	"HTTP_ROUTE":          &route.Route{},
	"CLUSTER":             &cluster.Cluster{},
	"EXTENSION_CONFIG":    &core.TypedExtensionConfig{},
	"BOOTSTRAP":           &bootstrap.Bootstrap{},
}

// istio checks the specification of one of istioKinds.
func (d Document) istio(spec *yaml.Node, kind proto.Message) []Problem {
	m := proto.Clone(kind)
	if problems := d.decode(spec, m); problems != nil {
		return problems
	}
	switch m := m.(type) {
	case *networking.EnvoyFilter:
		return d.patches(spec, m)
	case *extensions.WasmPlugin:
		return d.wasmPlugin(spec, m)
	}
	return nil
}

// patches checks what an EnvoyFilter puts into Envoy's messages, which to Istio's types is any structure.
func (d Document) patches(spec *yaml.Node, filter *networking.EnvoyFilter) (problems []Problem) {
	list := child(spec, "configPatches")
	if list == nil || len(list.Content) != len(filter.ConfigPatches) {
		return []Problem{d.problem(spec, "no list configPatches: Kubernetes knows it by no other name")}
	}
	for i, p := range filter.ConfigPatches {
		at := list.Content[i]
		v := child(child(at, "patch"), "value")
		message, known := patched[p.ApplyTo.String()]
		switch {
		case !known:
			problems = append(problems, d.problem(at, "applyTo %s: not one of those that are checked, see patched in build/apis", p.ApplyTo))
		case v == nil && p.GetPatch().GetOperation() != networking.EnvoyFilter_Patch_REMOVE:
			problems = append(problems, d.problem(at, "a patch without a value"))
		case v != nil:
			op := p.GetPatch().GetOperation()
			merged := op == networking.EnvoyFilter_Patch_MERGE || op == networking.EnvoyFilter_Patch_MERGE_AND_REPLACE_LIST
			problems = append(problems, d.envoy(v, proto.Clone(message), merged)...)
		}
	}
	return problems
}
