// Package check validates Envoy Gateway configuration the way an API server does
// when it is applied, without one: by the Go types of the APIs, and by the schemas
// and CEL rules of the CRDs that Envoy Gateway's own chart installs. The plugin's
// configuration inside may be any JSON there; build/apis checks that.
package check

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"go.yaml.in/yaml/v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "k8s.io/apimachinery/pkg/util/json"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	syaml "sigs.k8s.io/yaml"
)

// ErrInvalid reports an object that an API server would refuse.
var ErrInvalid = errors.New("invalid")

// apis are both views of the APIs. Schemas are compiled on first use, by one
// goroutine at a time.
type apis struct {
	mu      sync.Mutex
	types   *json.Serializer
	schemas *schemas
}

var load = sync.OnceValues(func() (*apis, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(egv1a1.AddToScheme(scheme), gwapiv1.Install(scheme)); err != nil {
		return nil, err
	}
	schemas, err := loadSchemas()
	types := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	return &apis{types: types, schemas: schemas}, err
})

// File validates each object of a YAML text and returns what is wrong, joined, one
// line each: the name of the file, the line, the object's kind and name, the path
// of the field and what is wrong there. Objects of kinds that neither Gateway API
// nor Envoy Gateway has are errors too. All of them are ErrInvalid.
func File(name string, text []byte) error {
	a, err := load()
	if err != nil {
		return err
	}
	documents, err := split(text)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalid, name, err)
	}
	if len(documents) == 0 {
		return fmt.Errorf("%w: %s: no object", ErrInvalid, name)
	}
	var all []error
	for _, d := range documents {
		for _, p := range a.problems(d) {
			all = append(all, fmt.Errorf("%w: %s:%d: %s: %s", ErrInvalid, name, d.line(p.path), d.title(), p))
		}
	}
	return errors.Join(all...)
}

// problem is what is wrong at a path such as spec.wasm[0].config; an empty one is
// the object itself.
type problem struct{ path, text string }

func (p problem) String() string {
	if p.path == "" {
		return p.text
	}
	return p.path + ": " + p.text
}

// problems asks the types first: what they do not know, the schema need not see.
func (a *apis) problems(d document) []problem {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, _, err := a.types.Decode(d.text, nil, nil); err != nil {
		return unfold(err)
	}
	var object map[string]any
	text, err := syaml.YAMLToJSON(d.text)
	if err == nil {
		err = kjson.Unmarshal(text, &object) // whole numbers as such, which the rules ask for
	}
	if err != nil {
		return []problem{{"", err.Error()}}
	}
	schema, err := a.schemas.of(value(find(d.root, "apiVersion")), value(find(d.root, "kind")))
	if err != nil {
		return []problem{{"", err.Error()}}
	}
	return schema.problems(object)
}

// unfold takes apart what a strict decoder says, with the paths in quotes.
func unfold(err error) []problem {
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return []problem{quoted(err)}
	}
	var all []problem
	for _, e := range strict.Errors() {
		all = append(all, quoted(e))
	}
	return all
}

var (
	unknownField = regexp.MustCompile(`unknown field "([^"]+)"`)
	goField      = regexp.MustCompile(`json: cannot unmarshal (\w+) into Go struct field (?:\w+\.)?(\S+) of type`)
	embedded     = regexp.MustCompile(`\b[A-Z]\w*\.`) // a Go struct's name, no field
)

func quoted(err error) problem {
	text := err.Error()
	if m := unknownField.FindStringSubmatch(text); m != nil {
		return problem{m[1], "unknown field"}
	}
	if m := goField.FindStringSubmatch(text); m != nil {
		return problem{embedded.ReplaceAllString(m[2], ""), "a " + m[1] + " does not fit here"}
	}
	if runtime.IsNotRegisteredError(err) {
		return problem{"kind", "neither Gateway API nor Envoy Gateway has it: " + text}
	}
	return problem{"", strings.Join(strings.Fields(text), " ")} // a YAML parser's has several lines
}

// mark is what begins a document, alone on its line but for a comment, as kubectl wants it.
var mark = regexp.MustCompile(`(?m)^---[ \t]*(#[^\n]*)?\r?\n`)

// split parses the documents of a text; empty ones are left out.
func split(text []byte) ([]document, error) {
	var all []document
	begin := 1
	for _, part := range mark.Split(string(text), -1) {
		var node, more yaml.Node
		decoder := yaml.NewDecoder(strings.NewReader(part))
		err := decoder.Decode(&node)
		if err == nil {
			if next := decoder.Decode(&more); next == nil {
				err = errors.New("another one follows that does not begin with --- on a line of its own")
			} else if !errors.Is(next, io.EOF) {
				err = next
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("in the document of line %d: %w", begin, err)
		}
		if len(node.Content) > 0 {
			all = append(all, document{text: []byte(part), root: node.Content[0], begin: begin})
		}
		begin += strings.Count(part, "\n") + 1
	}
	return all, nil
}
