package check_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy-gateway/check"
)

// Whatever a file holds, each thing that is wrong is told in one line.
func TestHostileFiles(t *testing.T) {
	const policy = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: EnvoyExtensionPolicy\nmetadata: {name: x}\n"
	bomb := policy + "x0: &x0 [a, a]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("x%d: &x%d [*x%d, *x%d]\n", i+1, i+1, i, i)
	}
	for name, text := range map[string]string{
		"empty": "", "comments": "# nothing\n---\n# more\n", "a scalar": "abc", "a list": "- 1", "null": "null",
		"no kind":                           "apiVersion: v1",
		"a kind that is no text":            "apiVersion: {a: b}\nkind: [x]",
		"tabs":                              policy + "spec:\n\twasm: []",
		"Latin-1":                           policy + "spec: {\"\xe9\": 1}",
		"NUL":                               policy + "spec: \"\x00\"",
		"keys twice":                        policy + "spec: {wasm: []}\nspec: {wasm: []}",
		"no alias":                          policy + "spec: *x",
		"an alias that holds itself":        policy + "spec: &x {wasm: [*x]}",
		"aliases without end":               bomb,
		"depth":                             policy + "spec: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"an alias":                          policy + "spec: {wasm: &x [{name: pinwheel, config: {nonsense: 1}}], targetRefs: *x}",
		"keys that are no text":             policy + "spec: {targetRefs: [{group: g, kind: Gateway, name: x}], wasm: [{name: pinwheel, code: {type: HTTP, http: {url: \"http://x\"}}, config: {1: 2}}]}",
		"spec that is no object":            policy + "spec: 7",
		"an object on the line of the mark": "--- {apiVersion: v1, kind: Nonsense}\n",
		"one behind the end of another":     "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: x}\nspec: {controllerName: a.b/c}\n...\nkind: Nonsense\n",
	} {
		t.Run(name, func(t *testing.T) {
			err := check.File("x.yaml", []byte(text))
			if !errors.Is(err, check.ErrInvalid) || strings.Contains(text, "Nonsense") != strings.Contains(err.Error(), "Nonsense") && !strings.Contains(err.Error(), "another one follows") {
				t.Fatalf("%v, want it to be invalid", err)
			}
			for line := range strings.Lines(err.Error()) {
				if !strings.HasPrefix(line, "invalid: x.yaml:") || len(line) > 700 {
					t.Errorf("%.700q", line)
				}
			}
		})
	}
}
