package controlplane

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// gatewayRef selects the gateway of the Gateway API in pinwheel.yaml.
const gatewayRef = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: llm}]"

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// classic is the page's example for Istio's own Gateway: its objects, and pinwheel.yaml with labels in place of the
// reference, as the page says.
func classic(t *testing.T) (c struct{ objects, config string }) {
	t.Helper()
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	gateway := ""
	for _, m := range yamlBlock.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(m[1], "kind: VirtualService") {
			gateway = m[1]
		}
	}
	if gateway == "" {
		t.Fatal("README.md has no block with a VirtualService")
	}
	user := userFile(t, "pinwheel.yaml")
	plugin, filter, ok := strings.Cut(user, "\n---\n")
	if !ok {
		t.Fatal("pinwheel.yaml is not two documents")
	}
	plugin = replaced(t, plugin, gatewayRef, "selector: {matchLabels: {istio: ingressgateway}}")
	filter = replaced(t, filter, gatewayRef, "workloadSelector: {labels: {istio: ingressgateway}}")
	_, service, ok := strings.Cut(userFile(t, "llm.yaml"), "kind: Service\n")
	if !ok {
		t.Fatal("llm.yaml has no Service")
	}
	c.objects = "apiVersion: v1\nkind: Service\n" + service
	c.config = strings.Join([]string{plugin, filter, gateway}, "\n---\n")
	return c
}
