package standalone_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy-gateway/check"
)

// dump reads a part of the configuration that Envoy has been given.
func (s *setup) dump(t *testing.T, resource, path string) gjson.Result {
	t.Helper()
	page, err := s.Admin.Get(t.Context(), "/config_dump?resource="+resource)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.Get(page, path)
}

// manager is the HTTP connection manager of the route's listener.
func (s *setup) manager(t *testing.T) gjson.Result {
	t.Helper()
	return s.dump(t, "dynamic_listeners", `configs.#(name=="llm/pinwheel/http").active_state.listener`).Get(
		`default_filter_chain.filters.0.typed_config`)
}

// filters are the names of the HTTP filters, without what Envoy Gateway appends to the type.
func (s *setup) filters(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, f := range s.manager(t).Get("http_filters.#.name").Array() {
		kind, _, _ := strings.Cut(f.String(), "/")
		all = append(all, strings.TrimPrefix(kind, "envoy.filters.http."))
	}
	return all
}

// configuration: what Envoy Gateway has made of the objects.
func (s *setup) configuration(t *testing.T) {
	manager := s.manager(t)
	wasm := manager.Get(`http_filters.#(name%"*wasm*").typed_config.config`)
	route := s.dump(t, "dynamic_route_configs", `configs.#.route_config.virtual_hosts|@flatten|#.routes|@flatten|0`)
	cluster := s.dump(t, "dynamic_active_clusters", `configs.#(cluster.name=="httproute/llm/vllm/rule/0").cluster`)
	override := cluster.Get("load_balancing_policy.policies.0.typed_extension_config.typed_config")
	config, err := check.Plugin(example)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		got  gjson.Result
		want string
	}{
		"early header mutation": {manager.Get("early_header_mutation_extensions.0.typed_config.mutations"), `[{"remove":"x-gateway-destination-endpoint"}]`},
		"stream idle timeout":   {manager.Get("stream_idle_timeout"), `"0s"`},
		"plugin":                {wasm.Get("name"), `"pinwheel"`},
		"fail open":             {wasm.Get("fail_open"), `true`},
		"plugin configuration":  {gjson.Parse(wasm.Get("configuration.value").String()), string(config)},
		"stop iteration":        {wasm.Get("allow_on_headers_stop_iteration"), ``},
		"cluster of the route":  {route.Get("route.cluster"), `"httproute/llm/vllm/rule/0"`},
		"route timeout":         {route.Get("route.timeout"), `"0s"`},
		"retry on":              {route.Get("route.retry_policy.retry_on"), `"connect-failure,refused-stream,reset"`},
		"retries":               {route.Get("route.retry_policy.num_retries"), `2`},
		"attempts":              {route.Get("response_headers_to_add.0.header"), `{"key":"x-envoy-attempt-count","value":"%UPSTREAM_REQUEST_ATTEMPT_COUNT%"}`},
		"balancer":              {override.Get("@type"), `"type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost"`},
		"target":                {override.Get("override_host_sources"), `[{"header":"x-gateway-destination-endpoint"}]`},
		"fallback":              {override.Get("fallback_policy.policies.0.typed_extension_config.name"), `"envoy.load_balancing_policies.least_request"`},
		"health check timeout":  {cluster.Get("health_checks.0.timeout"), `"5s"`},
		"circuit breaker":       {cluster.Get("circuit_breakers.thresholds.0.max_requests"), `100000`},
		"upstream filters":      {cluster.Get(`typed_extension_protocol_options.*.http_filters`), ``},
	} {
		if got := strings.Join(strings.Fields(c.got.Raw), ""); got != strings.Join(strings.Fields(c.want), "") {
			t.Errorf("%s: %s, want %s", what, c.got.Raw, c.want)
		}
	}
	// In front of this stands the kind, or nothing; see "Update it" in the README.
	if id := wasm.Get("vm_config.vm_id").String(); !strings.HasSuffix(id, "/llm/pinwheel/wasm/0") {
		t.Errorf("the virtual machine is %q, want the policy's name in it", id)
	}
	if f := strings.Join(s.filters(t), " "); f != "wasm router" {
		t.Errorf("the filters are %s", f)
	}
	info, err := s.Admin.Get(t.Context(), "/server_info")
	if drain := gjson.Get(info, "command_line_options.drain_time").String(); err != nil || drain != "3600s" {
		t.Errorf("drain time %q, %v, want 3600s", drain, err)
	}
}
