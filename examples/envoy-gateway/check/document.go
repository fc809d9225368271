package check

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
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
