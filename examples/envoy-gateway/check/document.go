package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v4"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// document is one object of a file.
type document struct {
	text  []byte
	root  *yaml.Node
	begin int // the line of the file on which text begins
}

// title is the kind and name, for messages.
func (d document) title() string {
	kind, name := find(d.root, "kind"), find(d.root, "metadata.name")
	return strings.TrimSpace(value(kind) + " " + value(name))
}

func value(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// line is where a path, or as much of it as there is, stands in the file.
func (d document) line(path string) int {
	line := d.root.Line
	if n := find(d.root, path); n != nil {
		line = n.Line
	}
	return d.begin + line - 1
}

var step = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// find follows a path such as spec.wasm[0].code and returns the deepest node of it
// that exists: a key rather than its value, because that has the line.
func find(n *yaml.Node, path string) *yaml.Node {
	last := n
	for _, s := range step.FindAllString(path, -1) {
		key, next := child(n, strings.Trim(s, "[]\""))
		if next == nil {
			return last
		}
		last, n = key, next
	}
	if n.Kind == yaml.ScalarNode {
		return n
	}
	return last
}

func child(n *yaml.Node, name string) (key, next *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		} else if err != nil && len(n.Content) == 1 {
			return child(n.Content[0], name) // Go's decoder leaves positions out
		}
	}
	return nil, nil
}

// pluginSchema is plugin/config.schema.json of this checkout.
var pluginSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	_, here, _, _ := runtime.Caller(0)
	return jsonschema.NewCompiler().Compile(filepath.Join(filepath.Dir(here), "..", "..", "..", "plugin", "config.schema.json"))
})

// plugin validates what Pinwheel is configured with, which for the API server may
// be any JSON. Plugins of another name are not looked at.
func (d document) plugin() []problem {
	var object struct {
		Spec struct {
			Wasm []struct {
				Name   string
				Config any
			}
		}
	}
	if err := yaml.Unmarshal(d.text, &object); err != nil || value(find(d.root, "kind")) != "EnvoyExtensionPolicy" {
		return nil
	}
	schema, err := pluginSchema()
	if err != nil {
		return []problem{{"", err.Error()}}
	}
	var all []problem
	for i, w := range object.Spec.Wasm {
		if w.Name != "pinwheel" {
			continue
		}
		at := fmt.Sprintf("spec.wasm[%d].config", i)
		text, err := json.Marshal(w.Config)
		if err != nil {
			return []problem{{at, err.Error()}}
		}
		config, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err == nil {
			err = schema.Validate(config)
		}
		var invalid *jsonschema.ValidationError
		if errors.As(err, &invalid) {
			all = append(all, leaves(at, invalid)...)
		} else if err != nil {
			all = append(all, problem{at, err.Error()})
		}
	}
	return all
}

// leaves are the causes that have no cause.
func leaves(at string, e *jsonschema.ValidationError) []problem {
	if len(e.Causes) == 0 {
		for _, step := range e.InstanceLocation {
			if _, err := strconv.Atoi(step); err == nil {
				at += "[" + step + "]"
			} else {
				at += "." + step
			}
		}
		if extra, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
			var all []problem
			for _, key := range extra.Properties {
				all = append(all, problem{at + "." + key, "unknown field"})
			}
			return all
		}
		return []problem{{at, e.ErrorKind.LocalizedString(message.NewPrinter(language.English))}}
	}
	var all []problem
	for _, c := range e.Causes {
		all = append(all, leaves(at, c)...)
	}
	return all
}

// Plugin returns Pinwheel's configuration in a file as the gateway hands it to the
// plugin: JSON.
func Plugin(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	documents, err := split(text)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		var object struct {
			Kind string
			Spec struct{ Wasm []struct{ Config any } }
		}
		if err := yaml.Unmarshal(d.text, &object); err != nil {
			return nil, err
		}
		if object.Kind == "EnvoyExtensionPolicy" && len(object.Spec.Wasm) == 1 {
			return json.Marshal(object.Spec.Wasm[0].Config)
		}
	}
	return nil, fmt.Errorf("%s: no EnvoyExtensionPolicy with one plugin", name)
}
