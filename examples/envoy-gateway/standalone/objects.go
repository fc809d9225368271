package standalone

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// Object is one Kubernetes object, as decoded from YAML.
type Object map[string]any

// Objects are those of pinwheel.yaml, changed in what a machine without a cluster
// does not have: pods, a name server, and the port of Envoy's admin interface.
type Objects struct {
	// Addr is host:port of the gateway's listener.
	Addr string

	objects []Object
	admin   string
}

// Options are what differs from one machine, or one test, to the next.
type Options struct {
	// Image and Digest are the plugin's: registry/name:tag, and the hex digits of its manifest's SHA-256.
	Image, Digest string
	// Replicas are ip:port.
	Replicas []string
	// NameServer is ip:port of the resolver that Envoy asks.
	NameServer string
	// EnvoyVersion is what the host infrastructure runs.
	EnvoyVersion string
}

// Load reads pinwheel.yaml and makes it run here.
func Load(name string, o Options) (Objects, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Objects{}, err
	}
	listener, err := envoytest.FreePort()
	if err != nil {
		return Objects{}, err
	}
	admin, err := envoytest.FreePort()
	if err != nil {
		return Objects{}, err
	}
	var all Objects
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var object Object
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return Objects{}, fmt.Errorf("standalone: %s: %w", name, err)
		}
		all.objects = append(all.objects, object)
	}
	all.Addr, all.admin = loopback(listener), loopback(admin)

	all.Edit("Gateway", func(spec Object) { spec.List("listeners")[0]["port"] = listener })
	all.Edit("EnvoyProxy", func(spec Object) {
		spec["provider"] = Object{"type": "Host", "host": Object{"envoyVersion": o.EnvoyVersion}}
		boot := spec.At("bootstrap")
		boot["value"] = fmt.Sprint(boot["value"]) + bootstrap(admin, o.NameServer)
	})
	all.Edit("HTTPRoute", func(spec Object) {
		spec.List("rules")[0]["backendRefs"] = []any{Object{"group": "gateway.envoyproxy.io", "kind": "Backend", "name": "vllm"}}
	})
	all.objects = append(all.objects, Object{
		"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "Backend",
		"metadata": Object{"name": "vllm", "namespace": "llm"}, "spec": Object{},
	})
	all.Replicas(o.Replicas)
	all.Plugin(o.Image, o.Digest)
	return all, nil
}

// bootstrap is what a cluster's proxy has and the host infrastructure leaves out:
// the cluster prometheus_stats, which leads to the admin interface, and a name
// server that knows Envoy Gateway's own service.
func bootstrap(admin int, nameServer string) string {
	host, port, _ := net.SplitHostPort(nameServer)
	return fmt.Sprintf(`admin: {address: {socket_address: {address: 127.0.0.1, port_value: %[1]d}}}
typed_dns_resolver_config:
  name: envoy.network.dns_resolver.cares
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig
    resolvers: [{socket_address: {address: %[2]s, port_value: %[3]s}}]
    dns_resolver_options: {no_default_search_domain: true}
static_resources:
  clusters:
  - name: prometheus_stats
    connect_timeout: 0.250s
    type: STATIC
    lb_policy: ROUND_ROBIN
    load_assignment:
      cluster_name: prometheus_stats
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[1]d}}}}]}]
`, admin, host, port)
}

// Replicas makes these ip:port the endpoints.
func (o *Objects) Replicas(addresses []string) {
	endpoints := []any{}
	for _, a := range addresses {
		host, port, _ := net.SplitHostPort(a)
		n, _ := strconv.Atoi(port)
		endpoints = append(endpoints, Object{"ip": Object{"address": host, "port": n}})
	}
	o.Edit("Backend", func(spec Object) { spec["endpoints"] = endpoints })
}

// Plugin makes this image the plugin.
func (o *Objects) Plugin(image, digest string) {
	o.Edit("EnvoyExtensionPolicy", func(spec Object) {
		code := spec.List("wasm")[0].At("code").At("image")
		code["url"], code["sha256"] = image, digest
	})
}

// Edit changes the spec of the object of that kind.
func (o *Objects) Edit(kind string, edit func(spec Object)) {
	for _, object := range o.objects {
		if object["kind"] == kind {
			edit(object.At("spec"))
			return
		}
	}
	panic("standalone: no object of kind " + kind)
}

// Rename gives the object of that kind another name. For Envoy Gateway's file
// provider it is then a new one: what an object of the same name has had, and has no
// more, stays.
func (o *Objects) Rename(kind, name string) {
	for _, object := range o.objects {
		if object["kind"] == kind {
			object.At("metadata")["name"] = name
		}
	}
}

// Remove takes the object of that kind away and returns it.
func (o *Objects) Remove(kind string) Object {
	i := slices.IndexFunc(o.objects, func(object Object) bool { return object["kind"] == kind })
	removed := o.objects[i]
	o.objects = slices.Delete(o.objects, i, i+1)
	return removed
}

// Add puts one more object beside them.
func (o *Objects) Add(object Object) { o.objects = append(o.objects, object) }

func (o *Objects) text() (string, error) {
	text := ""
	for _, object := range o.objects {
		b, err := yaml.Marshal(object)
		if err != nil {
			return "", err
		}
		text += "---\n" + string(b)
	}
	return text, nil
}

func (o Object) At(key string) Object { return object(o[key]) }

func (o Object) List(key string) []Object {
	var all []Object
	for _, item := range o[key].([]any) {
		all = append(all, object(item))
	}
	return all
}

// object is the map itself, not a copy: edits show in the objects.
func object(v any) Object {
	if m, ok := v.(map[string]any); ok {
		return m
	}
	return v.(Object)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
