package apis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mistake in each layer is found, on its line.
func TestMistakes(t *testing.T) {
	const envoy, istio, llm = "examples/envoy/envoy.yaml", "examples/istio/pinwheel.yaml", "examples/istio/llm.yaml"
	const envoyGateway = "examples/envoy-gateway/pinwheel.yaml"
	for _, c := range []struct {
		name, file string
		// from, which is there once or more, becomes to; the problem is on the line of `to`, or on an earlier one that
		// begins with at, if that is given.
		from, to, at, want string
	}{
		{"a field that Envoy does not know", envoy, "stat_prefix: llm", "stat_prefixx: llm", "", `unknown field "stat_prefixx"`},
		{"one in a typed configuration", envoy, "mutations: [{remove:", "mutation: [{remove:", "", `unknown field "mutation"`},
		{"one three types deep", envoy, "override_host_sources: [{header:", "override_host_sources: [{headr:", "", `unknown field "headr"`},
		{"a type that Envoy does not have", envoy, "least_request.v3.LeastRequest", "least_request.v3.LeastRequests", "", "LeastRequests"},
		{"a value of the wrong kind", envoy, "port_value: 10000", "port_value: ten", "", "ten"},
		{"a value out of range", envoy, "port_value: 9901", "port_value: 99010", "", "PortValue"},
		{"a constraint of a typed configuration", envoy, "override_host_sources: [{header: x-gateway-destination-endpoint}]",
			"override_host_sources: []", `"@type"`, "OverrideHostSources"},
		{"a key of Pinwheel's", envoy, `"policy":`, `"polcy":`, "value: |", "polcy"},
		{"a key twice", envoy, "connect_timeout: 1s", "connect_timeout: 1s\n    connect_timeout: 2s", "", "connect_timeout"},
		{"no YAML", envoy, "admin: {address:", "admin: [address:", "", ""},

		{"a field that WasmPlugin does not have", istio, "failStrategy: FAIL_RELOAD", "failStrategi: FAIL_RELOAD", "", "failStrategi"},
		{"a value that it does not have", istio, "phase: STATS", "phase: LAST", "", "LAST"},
		{"a digest of the wrong length", istio, `sha256: "0`, `sha256: "`, "", "sha256"},
		{"a key of Pinwheel's in pluginConfig", istio, "admin_cluster:", "admin_clustr:", "", "admin_clustr"},
		{"a field that EnvoyFilter does not have", istio, "applyTo: VIRTUAL_HOST", "applysTo: VIRTUAL_HOST", "", "applysTo"},
		{"a field by the name that only its .proto file has", istio, "applyTo: VIRTUAL_HOST", "apply_to: VIRTUAL_HOST", "", "'apply_to' not allowed"},
		{"a field of Envoy's in a patch", istio, "include_attempt_count_in_response:", "include_attempts_in_response:", "", "include_attempts_in_response"},
		{"one in a typed configuration of a patch", istio, "http_filters:", "http_filter:", "", "http_filter"},
		{"what the custom resource's schema forbids", istio, "kind: Gateway, name", `kind: "", name`, "", "targetRefs.0.kind"},
		{"a name that Kubernetes refuses", istio, "{name: pinwheel, namespace: llm}", "{name: Pin_wheel, namespace: llm}", "apiVersion", "metadata.name"},
		{"a field that metadata does not have", istio, "{name: pinwheel, namespace: llm}", "{name: pinwheel, namespaces: llm}", "", "namespaces"},

		{"a field that Gateway does not have", llm, "gatewayClassName:", "gatewayClass:", "", "gatewayClass"},
		{"a value that its schema does not have", llm, "namespaces: {from: Same}", "namespaces: {from: Some}", "", "from"},
		{"a field that Service does not have", llm, "targetPort:", "targetsPort:", "", "targetsPort"},
		{"a key of Pinwheel's in an EnvoyExtensionPolicy", envoyGateway, "debug_headers: true", "debug_header: true", "", "debug_header"},
		{"a value of such a key", envoyGateway, "admin_cluster: prometheus_stats", "admin_cluster: 7", "", "discovery.admin_cluster"},
		{"none of it", envoyGateway, "    config:\n", "    configs:\n", "- name: pinwheel", "without config"},
		{"a kind that nobody checks", llm, "kind: Namespace", "kind: Nameplace", "", "nobody checks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, c.file))
			if err != nil {
				t.Fatal(err)
			}
			before, after, ok := strings.Cut(string(text), c.from)
			if !ok {
				t.Fatalf("%s has no %q", c.file, c.from)
			}
			line := strings.Count(before+c.to, "\n") + 1
			if c.at != "" {
				lines := strings.Split(before+c.to, "\n")
				for line = len(lines); line > 0 && !strings.HasPrefix(strings.TrimSpace(lines[line-1]), c.at); line-- {
				}
			}
			documents, problems := Parse(c.file, []byte(before+c.to+after))
			for _, d := range documents {
				problems = append(problems, Check(root, d)...)
			}
			for _, p := range problems {
				if p.File == c.file && p.Line == line && strings.Contains(p.What, c.want) {
					return
				}
			}
			t.Errorf("line %d: %q is not told; found: %v", line, c.want, problems)
		})
	}
}

// So are those in pages, on the page's lines.
func TestMistakesInPages(t *testing.T) {
	page := "# A page\n\n1. A step:\n\n   ```yaml\n   connect_timeout: 1s\n   lb_policyy: RANDOM\n   ```\n\n" +
		"```yaml\nstatic_resources:\n  clusters: [{nam: x}]\n```\n"
	documents, problems := ParsePage("docs/page.md", []byte(page))
	for _, d := range documents {
		problems = append(problems, Check(root, d)...)
	}
	if len(problems) != 2 || problems[0].Line != 6 && problems[0].Line != 7 || problems[1].Line != 12 {
		t.Errorf("%v", problems)
	}
}

// Nobody knows some documents, and a list says who checks others: it must be there.
func TestUnknownDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1": "nobody knows",
		"- 1":  "not a mapping",
		"kind: X\napiVersion: gateway.envoyproxy.io/v1": "nobody checks",
	} {
		documents, _ := Parse("examples/x.yaml", []byte(text))
		if problems := Check(root, documents[0]); len(problems) != 1 || !strings.Contains(problems[0].What, want) {
			t.Errorf("%s: %v", text, problems)
		}
	}
	documents, _ := Parse("examples/suite.yaml", []byte("cases: []"))
	if problems := Check(t.TempDir(), documents[0]); len(problems) != 1 || !strings.Contains(problems[0].What, "not there") {
		t.Errorf("%v", problems)
	}
}
