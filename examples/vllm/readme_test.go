package vllm

import (
	"os"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// addition is a block of YAML of README, and the line of envoy.yaml after which it goes.
type addition struct{ after, text string }

// additions are what README adds to envoy.yaml.
func additions(t *testing.T) []addition {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	after := []string{
		"    connect_timeout: 1s\n",
		"        explicit_http_config: {http_protocol_options: {}}\n",
	}
	blocks := envoytest.Blocks(string(page), "yaml")
	if len(blocks) != len(after) {
		t.Fatalf("README.md has %d blocks of YAML, want %d", len(blocks), len(after))
	}
	var list []addition
	for i, b := range blocks {
		list = append(list, addition{after[i], b})
	}
	return list
}

// What README adds to envoy.yaml has a place there. That Envoy takes it is part of make e2e-vllm.
func TestAdditionsFit(t *testing.T) {
	file, err := os.ReadFile("../envoy/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range additions(t) {
		if n := strings.Count(string(file), a.after); n != 1 {
			t.Errorf("envoy.yaml has %d times %q, want once", n, a.after)
		}
		indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
		if indent(a.text) != indent(a.after) {
			t.Errorf("not indented as %q:\n%s", a.after, a.text)
		}
	}
}
