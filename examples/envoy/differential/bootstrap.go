package differential

import (
	"encoding/json"
	"fmt"
	"strings"
)

// settings are the names that may follow the word config.
var settings = map[string]bool{
	"allow_on_headers_stop_iteration": true, // as in Envoy
	"failure_policy":                  true, // FAIL_CLOSED, FAIL_OPEN or FAIL_RELOAD; gives the exchange a virtual machine of its own
	"buffer_limit":                    true, // bytes
	"vm_config":                       true, // text
	"own_process":                     true, // the exchange gets an Envoy of its own, which it may kill
	"threads":                         true, // the lines of the main thread, which is the canary's too, are recorded as well
	"grpc":                            true, // the cluster {other} speaks gRPC: headers begin an answer, data is a message, trailers end it
	"refused":                         true, // the cluster {upstream} refuses connections
	"timeout":                         true, // of the route, such as 0.1s
}

// object is a JSON object.
type object = map[string]any

// place is where an exchange meets the gateway.
type place struct {
	exchange        *Exchange
	upstream, other int // ports
}

// cluster is the name of a cluster of the exchange: {upstream} or {other}.
func (e *Exchange) cluster(which string) string { return which + "." + e.ID() }

// script is the plugin configuration, with the names of clusters in it.
func (e *Exchange) script() string {
	return strings.NewReplacer("{upstream}", e.cluster("upstream"), "{other}", e.cluster("other")).Replace(strings.Join(e.Probe, "\n"))
}

// ownVM is true where the virtual machine must not be shared with other exchanges.
func (e *Exchange) ownVM() bool {
	return e.Config["failure_policy"] != "" || e.Config["vm_config"] != ""
}

// ownProcess is true where the Envoy must not be shared with other exchanges.
func (e *Exchange) ownProcess() bool { _, own := e.Config["own_process"]; return own }

// allThreads is true where the lines of all threads are recorded, behind the name of each: main or worker.
func (e *Exchange) allThreads() bool { _, all := e.Config["threads"]; return all }

// speaksGRPC is true where the cluster {other} does.
func (e *Exchange) speaksGRPC() bool { _, grpc := e.Config["grpc"]; return grpc }

func bootstrap(wasm string, places []place) (string, error) {
	listeners, clusters := []any{barrierListener()}, []any{}
	for _, p := range places {
		listeners = append(listeners, p.listener(wasm))
		protocol := object{"http_protocol_options": object{"enable_trailers": true}}
		clusters = append(clusters, cluster(p.exchange.cluster("upstream"), p.upstream, protocol))
		if p.exchange.speaksGRPC() {
			protocol = object{"http2_protocol_options": object{}}
		}
		clusters = append(clusters, cluster(p.exchange.cluster("other"), p.other, protocol))
	}
	text, err := json.MarshalIndent(object{
		"admin":            object{"address": address(0)},
		"static_resources": object{"listeners": listeners, "clusters": clusters},
	}, "", " ")
	return string(text), err
}

// barrier is the name of a listener that answers by itself.
const barrier = "barrier"

func barrierListener() object {
	manager := object{
		"@type":       typeURL("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
		"stat_prefix": barrier,
		"route_config": object{"virtual_hosts": []any{object{"name": "all", "domains": []string{"*"},
			"routes": []any{object{"match": object{"prefix": "/"}, "direct_response": object{"status": 200}}}}}},
		"http_filters": []any{object{"name": "router", "typed_config": object{
			"@type": typeURL("envoy.extensions.filters.http.router.v3.Router")}}},
	}
	return object{"name": barrier, "address": address(0),
		"filter_chains": []any{object{"filters": []any{object{"name": "hcm", "typed_config": manager}}}}}
}

func address(port int) object {
	return object{"socket_address": object{"address": "127.0.0.1", "port_value": port}}
}

func cluster(name string, port int, protocol object) object {
	const options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	return object{
		"name": name, "type": "STATIC", "connect_timeout": "1s",
		"load_assignment": object{"cluster_name": name, "endpoints": []any{
			object{"lb_endpoints": []any{object{"endpoint": object{"address": address(port)}}}}}},
		"typed_extension_protocol_options": object{options: object{
			"@type":                typeURL(options),
			"explicit_http_config": protocol,
		}},
	}
}

func typeURL(name string) string { return "type.googleapis.com/" + name }

func (p place) listener(wasm string) object {
	e := p.exchange
	route := object{"cluster": e.cluster("upstream"), "timeout": "0s"}
	if t := e.Config["timeout"]; t != "" {
		route["timeout"] = t
	}
	manager := object{
		"@type":                        typeURL("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
		"stat_prefix":                  "hcm",
		"stream_idle_timeout":          "0s",
		"generate_request_id":          false,
		"delayed_close_timeout":        "0s", // a connection that ends badly ends at once
		"server_header_transformation": "PASS_THROUGH",
		"http_protocol_options":        object{"enable_trailers": true},
		"route_config": object{"virtual_hosts": []any{object{"name": "all", "domains": []string{"*"},
			"routes": []any{object{"name": "route", "match": object{"prefix": "/"}, "route": route}}}}},
		"http_filters": []any{
			object{"name": "probe", "typed_config": object{
				"@type": typeURL("envoy.extensions.filters.http.wasm.v3.Wasm"), "config": e.plugin(wasm)}},
			object{"name": "router", "typed_config": object{
				"@type": typeURL("envoy.extensions.filters.http.router.v3.Router"), "suppress_envoy_headers": true}},
		},
	}
	l := object{
		"name": e.ID(), "address": address(0),
		"filter_chains": []any{object{"filters": []any{object{"name": "hcm", "typed_config": manager}}}},
	}
	if limit := e.Config["buffer_limit"]; limit != "" {
		l["per_connection_buffer_limit_bytes"] = json.Number(limit)
	}
	return l
}

func (e *Exchange) plugin(wasm string) object {
	vm := object{"vm_id": "shared", "runtime": "envoy.wasm.runtime.v8", "code": object{"local": object{"filename": wasm}}}
	if e.ownVM() {
		vm["vm_id"] = e.ID()
	}
	if c, ok := e.Config["vm_config"]; ok {
		vm["configuration"] = text(c)
	}
	c := object{"name": "probe", "root_id": e.ID(), "vm_config": vm, "configuration": text(e.script())}
	if policy := e.Config["failure_policy"]; policy != "" {
		c["failure_policy"] = policy
	}
	if _, ok := e.Config["allow_on_headers_stop_iteration"]; ok {
		c["allow_on_headers_stop_iteration"] = true
	}
	return c
}

func text(s string) object {
	return object{"@type": typeURL("google.protobuf.StringValue"), "value": fmt.Sprint(s)}
}
