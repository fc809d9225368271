package envoytest

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const small = `admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
static_resources:
  listeners:
  - name: llm
    address: {socket_address: {address: 127.0.0.1, port_value: 10000}}
    early:
    - name: strip
      mutations: []

    # about the filters
    routes:
    - name: llm
    http_filters:
    - name: pinwheel
      # allow_on_headers_stop_iteration: true
      value: |
        {
          "replicas": ["127.0.0.1:8001"]
        }
    - name: router

  clusters:
  - name: vllm
    type: STATIC
    connect_timeout: 1s
    load_assignment:
      endpoints:
      - {endpoint: {address: {port_value: 8001}}}
      - {endpoint: {address: {port_value: 8002}}}
    last: true
`

func TestBootstrapEdits(t *testing.T) {
	cases := []struct {
		name      string
		edit      func(Bootstrap) (Bootstrap, error)
		in, notIn []string
	}{
		{"port", func(b Bootstrap) (Bootstrap, error) { return b.Port(9901, 0) },
			[]string{"port_value: 0}", "port_value: 10000}"}, []string{"9901"}},
		{"plugin", func(b Bootstrap) (Bootstrap, error) {
			return b.Plugin(func(c map[string]any) { c["debug_headers"] = true })
		}, []string{"value: |\n        {\"debug_headers\":true,\"replicas\":[\"127.0.0.1:8001\"]}\n    - name: router\n"}, nil},
		{"respelt", func(b Bootstrap) (Bootstrap, error) { return b.Respell(3) },
			[]string{"          \"replicas\": [\"127.0.0.1:8001\"]\n        }   \n    - name: router"}, nil},
		{"endpoints", func(b Bootstrap) (Bootstrap, error) { return b.Endpoints(8001, 3) },
			[]string{"8001}}}\n      - {endpoint: {address: {port_value: 8002}}}\n      - {endpoint: {address: {port_value: 8003}}}\n    last"}, nil},
		{"before replicas", func(b Bootstrap) (Bootstrap, error) {
			return b.Before([]string{"127.0.0.1:31", "127.0.0.1:32", "127.0.0.1:33"}, 30)
		},
			[]string{"port_value: 0}", "port_value: 30}", "{port_value: 31}}}\n", "{port_value: 33}}}\n", `"replicas":["127.0.0.1:31","127.0.0.1:32","127.0.0.1:33"]`},
			[]string{"9901", "10000", "800"}},
		{"without a block", func(b Bootstrap) (Bootstrap, error) { return b.Without("early:") },
			[]string{"http_filters:", "10000"}, []string{"early", "strip", "mutations"}},
		{"bodies shown", Bootstrap.ShowBodies, []string{"\n      allow_on_headers_stop_iteration: true\n"}, nil},
		{"connect timeout", func(b Bootstrap) (Bootstrap, error) { return b.ConnectTimeout(90 * time.Second) },
			[]string{"    connect_timeout: 90s\n"}, []string{": 1s"}},
		{"buffer limit", func(b Bootstrap) (Bootstrap, error) { return b.BufferLimit(7) },
			[]string{"  - name: llm\n    per_connection_buffer_limit_bytes: 7\n    address:"}, nil},
		{"endpoints in a file", func(b Bootstrap) (Bootstrap, error) { return b.FileEndpoints("/x/eds.yaml") },
			[]string{"  - name: vllm\n    type: EDS\n    eds_cluster_config:", `path: "/x/eds.yaml"`}, []string{"STATIC", "load_assignment", "8001}"}},
		{"without a filter", func(b Bootstrap) (Bootstrap, error) { return b.WithoutFilter("pinwheel") },
			[]string{"http_filters:\n    - name: router"}, []string{"pinwheel", "replicas"}},
	}
	for _, c := range cases {
		got, err := c.edit(small)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, w := range c.in {
			if !strings.Contains(string(got), w) {
				t.Errorf("%s: lacks %q:\n%s", c.name, w, got)
			}
		}
		for _, w := range c.notIn {
			if strings.Contains(string(got), w) {
				t.Errorf("%s: still has %q:\n%s", c.name, w, got)
			}
		}
	}
}

func TestBootstrapEditsThatMiss(t *testing.T) {
	cases := map[string]func() (Bootstrap, error){
		"unknown port": func() (Bootstrap, error) { return Bootstrap(small).Port(1, 2) },
		"no wasm":      func() (Bootstrap, error) { return Bootstrap(small).Wasm("x") },
		"no block":     func() (Bootstrap, error) { return Bootstrap(small).Without("late:") },
		"block twice":  func() (Bootstrap, error) { return Bootstrap(small + small).Without("early:") },
		"no JSON":      func() (Bootstrap, error) { return Bootstrap("value: |\n  {,}\n").Plugin(func(map[string]any) {}) },
		"no flag":      func() (Bootstrap, error) { return Bootstrap("x").ShowBodies() },
		"no routes":    func() (Bootstrap, error) { return Bootstrap(small).DirectResponse("/x", "y") },
		"no route":     func() (Bootstrap, error) { return Bootstrap(small).PluginOff("/x") },
		"no endpoints": func() (Bootstrap, error) { return Bootstrap("type: STATIC\n").FileEndpoints("f") },
		"not static":   func() (Bootstrap, error) { return Bootstrap("load_assignment:\n").FileEndpoints("f") },
		"no listeners": func() (Bootstrap, error) { b, _, err := Bootstrap("clusters:\n").SplitListeners("f"); return b, err },
		"other name": func() (Bootstrap, error) {
			b, _, err := Bootstrap("listeners:\n- name: x\n").SplitListeners("f")
			return b, err
		},
	}
	for name, f := range cases {
		got, err := f()
		if !errors.Is(err, ErrBootstrap) {
			t.Errorf("%s: %q, %v; want ErrBootstrap", name, got, err)
		}
	}
}

func TestSplitListeners(t *testing.T) {
	b, resources, err := Bootstrap(small).SplitListeners("/x/lds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if s := string(b); strings.Contains(s, "10000") || !strings.Contains(s, `path: "/x/lds.yaml"`) || !strings.Contains(s, "static_resources:\n  clusters:\n  - name: vllm\n") {
		t.Errorf("bootstrap:\n%s", s)
	}
	const head = "resources:\n  - \"@type\": type.googleapis.com/envoy.config.listener.v3.Listener\n    name: llm\n"
	if !strings.HasPrefix(resources, head) || !strings.Contains(resources, "- name: router\n") || strings.Contains(resources, "clusters") {
		t.Errorf("resources:\n%s", resources)
	}
}

func TestParseStats(t *testing.T) {
	got, err := parseStats(`{"stats":[{"name":"a.b","value":3},{"name":"below","value":18446744073709551615},` +
		`{"name":"text","value":"words"},{"histograms":{"x":[]}}]}`)
	if err != nil || len(got) != 2 || got["a.b"] != 3 || got["below"] != 1<<64-1 {
		t.Errorf("parseStats = %v, %v", got, err)
	}
	if _, err := parseStats("not JSON"); err == nil {
		t.Error("no error for a page that is not JSON")
	}
}
