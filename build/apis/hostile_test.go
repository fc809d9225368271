package apis

import (
	"fmt"
	"strings"
	"testing"
)

// Whatever a file holds, it is told in lines of the file, and soon.
func TestHostileDocuments(t *testing.T) {
	const filter = "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: x}\n"
	bomb := "static_resources: {}\nx0: &x0 [a, a]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("x%d: &x%d [*x%d, *x%d]\n", i+1, i+1, i, i)
	}
	for name, text := range map[string]string{
		"another name of the field":  filter + "spec: {config_patches: [{applyTo: CLUSTER}]}",
		"an alias for the field":     filter + "x: &x [{applyTo: CLUSTER}]\nspec: {configPatches: *x}",
		"an alias for the spec":      filter + "x: &x {configPatches: [{applyTo: CLUSTER}]}\nspec: *x",
		"an alias for a patch":       filter + "x: &x {applyTo: CLUSTER}\nspec: {configPatches: [*x]}",
		"a merge":                    filter + "x: &x {applyTo: CLUSTER}\nspec: {configPatches: [{<<: *x}]}",
		"null patches":               filter + "spec: {configPatches: null}",
		"a null patch":               filter + "spec: {configPatches: [null]}",
		"patches twice":              filter + "spec: {configPatches: [], configPatches: [{applyTo: CLUSTER}]}",
		"no spec":                    filter + "spec:",
		"an alias that holds itself": "static_resources: &x {a: *x, b: *x}",
		"aliases without end":        bomb,
		"depth":                      "static_resources: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"a key that is no text":      "static_resources: {? [a] : b}",
		"a number that is none":      "admin: {address: {socket_address: {address: x, port_value: !!int \"abc\"}}}",
		"no number":                  "admin: {address: {socket_address: {address: x, port_value: .nan}}}",
		"a tag":                      "admin: !!python/object:os.system {a: b}",
		"tabs":                       "static_resources:\n\tclusters: []",
		"Latin-1":                    "static_resources: {\"\xe9\": 1}",
		"NUL":                        "static_resources: \"\x00\"",
		"no alias":                   "static_resources: *x",
		"an open string":             "static_resources: \"a\nb\nc",
		"a type that is none":        "resources: [{\"@type\": x, a: 1}]",
		"a type of no text":          "resources: [{\"@type\": {a: b}}]",
		"a root alias":               "- &x {static_resources: {}}\n- *x",
		"a kind that is no text":     "apiVersion: {a: b}\nkind: [x]",
		"metadata that is no object": "apiVersion: v1\nkind: Service\nmetadata: [a]\nspec: 7",
		"a plugin's aliases":         "apiVersion: extensions.istio.io/v1alpha1\nkind: WasmPlugin\nmetadata: {name: x}\nx: &x {a: 1}\nspec: {url: \"oci://pinwheel\", pluginConfig: *x}",
		"a plugin that is no object": "apiVersion: extensions.istio.io/v1alpha1\nkind: WasmPlugin\nmetadata: {name: x}\nspec: {url: \"oci://pinwheel\", plugin_config: [1]}",
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := Parse("examples/x.yaml", []byte(text))
			for _, d := range documents {
				problems = append(problems, Check(root, d)...)
			}
			if len(problems) == 0 {
				t.Error("nothing is wrong with it")
			}
			for _, p := range problems {
				if lines := strings.Count(text, "\n") + 1; p.Line < 1 || p.Line > lines || strings.Contains(p.What, "\n") || len(p.What) > 500 {
					t.Errorf("line %d of %d: %.600q", p.Line, lines, p.What)
				}
			}
		})
	}
}
