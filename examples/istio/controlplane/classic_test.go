package controlplane

import (
	"os"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// gatewayRef selects the gateway of the Gateway API in pinwheel.yaml.
const gatewayRef = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: llm}]"

// classic is the page's example for Istio's own Gateway: its objects, and pinwheel.yaml with labels in place of the
// reference, as the page says.
func classic(t *testing.T) (c struct{ objects, config string }) {
	t.Helper()
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	gateway := ""
	for _, block := range envoytest.Blocks(string(page), "yaml") {
		if strings.Contains(block, "kind: VirtualService") {
			gateway = block
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
