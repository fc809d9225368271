package apis

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	extensions "istio.io/api/extensions/v1alpha1"

	"github.com/pinwheel-proxy/pinwheel/plugin"
)

// pluginSchema is Pinwheel's for editors.
var pluginSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile(filepath.Join("..", "..", "plugin", "config.schema.json"))
})

// configuration checks a text that Pinwheel would be given: by the schema for editors, and by its own parser. It stands at
// the node, as YAML or as a text.
func (d Document) configuration(n *yaml.Node, text string) []Problem {
	schema, err := pluginSchema()
	if err != nil {
		return []Problem{d.problem(n, "%v", err)}
	}
	if problems := d.fits(n, text, schema, "plugin/config.schema.json"); problems != nil {
		return problems
	}
	if _, err := plugin.ParseConfig([]byte(text)); err != nil {
		return []Problem{d.problem(n, "Pinwheel refuses its configuration: %v", err)}
	}
	return nil
}

// wasm checks the configuration in a filter of Envoy's that loads Pinwheel.
func (d Document) wasm(n *yaml.Node, m proto.Message) []Problem {
	filter, ok := m.(*wasm.Wasm)
	if !ok || path.Base(filter.GetConfig().GetVmConfig().GetCode().GetLocal().GetFilename()) != "pinwheel.wasm" {
		return nil
	}
	at := child(child(child(n, "config"), "configuration"), "value")
	text := &wrapperspb.StringValue{}
	if err := filter.GetConfig().GetConfiguration().UnmarshalTo(text); err != nil {
		return []Problem{d.problem(child(n, "config"), "Pinwheel's configuration is not a StringValue: %v", err)}
	}
	return d.configuration(at, text.Value)
}

var digest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// wasmPlugin checks the configuration in an Istio WasmPlugin that loads Pinwheel, and how it names the image.
func (d Document) wasmPlugin(spec *yaml.Node, m *extensions.WasmPlugin) (problems []Problem) {
	if !strings.HasPrefix(m.Url, "oci://") || !digest.MatchString(m.Sha256) {
		problems = append(problems, d.problem(spec, "an image without its digest: url: oci://... and sha256: 64 hexadecimal digits"))
	}
	if !strings.Contains(path.Base(m.Url), "pinwheel") {
		return problems
	}
	return append(problems, d.mapping(spec, "pluginConfig")...)
}

// extensionPolicies checks the configuration of Pinwheel in an EnvoyExtensionPolicy. What else there is in the object, and in
// others, is for those who check Envoy Gateway's.
func (d Document) extensionPolicies() (problems []Problem) {
	plugins := child(child(d.Root, "spec"), "wasm")
	if value(d.Root, "kind") != "EnvoyExtensionPolicy" || plugins == nil {
		return nil
	}
	for _, p := range plugins.Content {
		if value(p, "name") == "pinwheel" {
			problems = append(problems, d.mapping(p, "config")...)
		}
	}
	return problems
}

// mapping checks a configuration of Pinwheel that is YAML, under a key of a node.
func (d Document) mapping(n *yaml.Node, key string) []Problem {
	at := child(n, key)
	if at == nil {
		return []Problem{d.problem(n, "Pinwheel without %s", key)}
	}
	text, err := toJSON(at)
	if err != nil {
		return []Problem{d.problem(at, "%v", err)}
	}
	return d.configuration(at, strings.TrimSpace(string(text)))
}
