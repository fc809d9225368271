package apis

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	extensions "istio.io/api/extensions/v1alpha1"

	"github.com/pinwheel-proxy/pinwheel/plugin"
)

// schemaFile is from this folder.
var schemaFile = filepath.Join("..", "..", "plugin", "config.schema.json")

// configuration checks a text that Pinwheel would be given: by its own parser, and by the schema for editors.
func (d Document) configuration(n *yaml.Node, text string) []Problem {
	if _, err := plugin.ParseConfig([]byte(text)); err != nil {
		return []Problem{d.problem(n, "Pinwheel refuses its configuration: %v", err)}
	}
	schema, err := os.ReadFile(schemaFile)
	if err != nil {
		return []Problem{d.problem(n, "%v", err)}
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return []Problem{d.problem(n, "%v", err)}
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("config.schema.json", resource); err != nil {
		return []Problem{d.problem(n, "%v", err)}
	}
	compiled, err := c.Compile("config.schema.json")
	if err != nil {
		return []Problem{d.problem(n, "%v", err)}
	}
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = compiled.Validate(instance)
	}
	if err != nil {
		return []Problem{d.problem(n, "plugin/config.schema.json: %v", err)}
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
	at := child(spec, "pluginConfig")
	if at == nil {
		return append(problems, d.problem(spec, "Pinwheel without pluginConfig"))
	}
	text, err := toJSON(at)
	if err != nil {
		return append(problems, d.problem(at, "%v", err))
	}
	return append(problems, d.configuration(at, string(bytes.TrimSpace(text)))...)
}
