package apis

import (
	"os"
	"path/filepath"
	"strings"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"go.yaml.in/yaml/v4"
)

// elsewhere are documents that somebody else checks, but for Pinwheel's configuration in them.
var elsewhere = []struct {
	// files is how the path of the file begins; group is that of a Kubernetes object's apiVersion, or "" for what is no
	// Kubernetes object; key is a top-level key of the latter.
	files, group, key string
	// by is the file or folder of the test that checks them, from the root.
	by string
}{
	{"", "", "cases", "hostsim/suite"}, // suites of hostsim
	{"examples/clients/", "", "policy_model", "examples/clients/readme_test.go"},
	{"examples/docker/compose.yaml", "", "services", "examples/docker/compose_test.go"},
	{"examples/envoy-gateway/", "gateway.envoyproxy.io", "", "examples/envoy-gateway/check"},
	{"examples/grafana/", "monitoring.coreos.com", "", "examples/grafana/kubernetes/main_test.go"},
	{"examples/grafana/", "", "scrape_configs", "examples/grafana/dashboard_test.go"}, // by promtool, all three
	{"examples/grafana/", "", "groups", "examples/grafana/dashboard_test.go"},
	{"examples/grafana/", "", "rule_files", "examples/grafana/dashboard_test.go"},
}

// excerpts are blocks that leave lines out of a file, and so are no YAML that anybody could paste. Each of their lines is
// in that file.
var excerpts = []struct{ page, begins, of string }{
	{"README.md", "early_header_mutation_extensions:", "examples/envoy/envoy.yaml"},
}

func excerpt(page, block string) bool {
	for _, e := range excerpts {
		if e.page == page && strings.HasPrefix(strings.TrimSpace(block), e.begins) {
			return true
		}
	}
	return false
}

// Check finds what is wrong with a document. Nobody knowing what it is counts as wrong.
func Check(root string, d Document) []Problem {
	if d.Root.Kind != yaml.MappingNode {
		return []Problem{d.problem(d.Root, "not a mapping")}
	}
	object := child(d.Root, "apiVersion") != nil || child(d.Root, "kind") != nil
	for _, e := range elsewhere {
		group, _, _ := strings.Cut(value(d.Root, "apiVersion"), "/")
		if strings.HasPrefix(d.File, e.files) && group == e.group && object == (e.group != "") && (e.key == "" || child(d.Root, e.key) != nil) {
			if _, err := os.Stat(filepath.Join(root, e.by)); err != nil {
				return []Problem{d.problem(d.Root, "to be checked by %s, which is not there", e.by)}
			}
			return d.extensionPolicies()
		}
	}
	switch {
	case object:
		return d.object()
	case d.isBootstrap():
		return d.envoy(d.Root, &bootstrap.Bootstrap{}, false)
	case child(d.Root, "resources") != nil:
		return d.resources()
	case d.Block:
		return d.part()
	}
	return []Problem{d.problem(d.Root, "nobody knows what this is: add it to build/apis, or say in elsewhere (build/apis/check.go) who checks it")}
}
