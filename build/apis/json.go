package apis

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// toJSON writes a node as JSON in which everything stands on the line that it has in the YAML file, so that the lines in
// a JSON parser's errors are those of the file. Keys written twice stay so, for that parser to refuse.
func toJSON(n *yaml.Node) ([]byte, error) {
	w := &jsonWriter{line: 1}
	if err := w.node(n, 0); err != nil {
		return nil, err
	}
	return []byte(w.text.String()), nil
}

type jsonWriter struct {
	text strings.Builder
	line int
}

// at moves on to a line. An alias stands on the line where it is used.
func (w *jsonWriter) at(n *yaml.Node) {
	for ; w.line < n.Line; w.line++ {
		w.text.WriteByte('\n')
	}
}

// most bounds a document in bytes of JSON, which aliases of aliases make out of a few lines.
const most = 16 << 20

// node writes n; depth bounds aliases that contain themselves.
func (w *jsonWriter) node(n *yaml.Node, depth int) error {
	if depth > 100 {
		return fmt.Errorf("line %d: nested more than 100 levels deep", n.Line)
	}
	if w.text.Len() > most {
		return fmt.Errorf("line %d: more than %d MiB here", n.Line, most>>20)
	}
	w.at(n)
	switch n.Kind {
	case yaml.DocumentNode:
		return w.node(n.Content[0], depth+1)
	case yaml.AliasNode:
		return w.node(n.Alias, depth+1)
	case yaml.MappingNode:
		w.text.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				w.text.WriteByte(',')
			}
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				return fmt.Errorf("line %d: a key that is no text", key.Line)
			}
			w.at(key)
			if err := w.string(key.Value); err != nil {
				return err
			}
			w.text.WriteByte(':')
			if err := w.node(n.Content[i+1], depth+1); err != nil {
				return err
			}
		}
		w.text.WriteByte('}')
	case yaml.SequenceNode:
		w.text.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				w.text.WriteByte(',')
			}
			if err := w.node(item, depth+1); err != nil {
				return err
			}
		}
		w.text.WriteByte(']')
	default:
		return w.scalar(n)
	}
	return nil
}

func (w *jsonWriter) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.text.WriteString("null")
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return err
		}
		w.text.WriteString(strconv.FormatBool(b))
	case "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return err
		}
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
		w.text.Write(text)
	default:
		return w.string(n.Value)
	}
	return nil
}

func (w *jsonWriter) string(s string) error {
	text, err := json.Marshal(s)
	w.text.Write(text)
	return err
}

// meant is what an alias stands for, and else the node itself.
func meant(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// child is the value of a key, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	n = meant(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return meant(n.Content[i+1])
		}
	}
	return nil
}

// value is a child's scalar, or "".
func value(n *yaml.Node, keys ...string) string {
	for _, key := range keys {
		n = child(n, key)
	}
	if n == nil {
		return ""
	}
	return n.Value
}

// locate follows keys and indices as far as there are nodes; the node of the key itself where the last is there.
func locate(n *yaml.Node, path []string) *yaml.Node {
	at := n
	for _, step := range path {
		if n == nil {
			break
		}
		var next *yaml.Node
		if i, err := strconv.Atoi(step); err == nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
			next = n.Content[i]
			at = next
		} else if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == step {
					at, next = n.Content[i], n.Content[i+1]
				}
			}
		}
		n = next
	}
	return at
}
