package check_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy-gateway/check"
)

// The cluster that discovery asks is one that Envoy Gateway gives every proxy of a
// Kubernetes cluster, and it leads to the proxy's admin interface. The standalone
// tests, whose proxy lacks it, add the same.
func TestAdminClusterIsEnvoyGateways(t *testing.T) {
	config, err := check.Plugin(example)
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		Discovery struct {
			AdminCluster string `json:"admin_cluster"`
		}
		Pools []struct{ Cluster string }
	}
	if err := json.Unmarshal(config, &plugin); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/envoyproxy/gateway").Output()
	if err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "internal", "xds", "bootstrap", "bootstrap.yaml.tpl"))
	if err != nil {
		t.Fatal(err)
	}
	cluster := regexp.MustCompile(`(?s)\{\{- if \.EnablePrometheus \}\}\n  - name: ` + regexp.QuoteMeta(plugin.Discovery.AdminCluster) +
		`\n.{0,400}?address: \{\{ \.AdminServer\.Address \}\}\s+port_value: \{\{ \.AdminServer\.Port \}\}\n  \{\{- end \}\}`)
	if !cluster.Match(template) {
		t.Errorf("no cluster %q that leads to the admin interface in Envoy Gateway's bootstrap", plugin.Discovery.AdminCluster)
	}
	text := read(t)
	route := regexp.MustCompile(`kind: HTTPRoute\nmetadata: \{name: (\w+), namespace: (\w+)\}`).FindStringSubmatch(text)
	if route == nil || len(plugin.Pools) != 1 || plugin.Pools[0].Cluster != "httproute/"+route[2]+"/"+route[1]+"/rule/0" {
		t.Errorf("the pool's cluster is %v, the route is %q", plugin.Pools, route)
	}
}
