package apis

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v4"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// crdFiles are the custom resource definitions that modules of ours carry.
var crdFiles = []struct{ module, files string }{
	{"istio.io/api", "kubernetes/customresourcedefinitions.gen.yaml"},
	{"sigs.k8s.io/gateway-api", "config/crd/standard/*.yaml"},
}

// crdSchemas are the schemas by apiVersion/kind.
var crdSchemas = sync.OnceValues(loadCRDs)

func loadCRDs() (map[string]*yaml.Node, error) {
	schemas := map[string]*yaml.Node{}
	for _, f := range crdFiles {
		dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", f.module).Output()
		if err != nil {
			return nil, fmt.Errorf("where is %s: %w", f.module, err)
		}
		names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), f.files))
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("no %s in %s", f.files, f.module)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			definitions, problems := Parse(name, text)
			if problems != nil {
				return nil, fmt.Errorf("%s", problems[0])
			}
			for _, d := range definitions {
				if value(d.Root, "kind") != "CustomResourceDefinition" {
					continue
				}
				spec := child(d.Root, "spec")
				for _, v := range child(spec, "versions").Content {
					schemas[value(spec, "group")+"/"+value(v, "name")+"/"+value(spec, "names", "kind")] = child(child(v, "schema"), "openAPIV3Schema")
				}
			}
		}
	}
	return schemas, nil
}

// customResource checks the document against its definition, if it has one: types, enumerations, lengths, patterns,
// and what excludes what. The rules in CEL that the API server adds are not run here.
func (d Document) customResource(apiVersion, resource string) []Problem {
	schemas, err := crdSchemas()
	if err != nil {
		return []Problem{d.problem(d.Root, "%v", err)}
	}
	node, ok := schemas[apiVersion+"/"+resource]
	if !ok {
		if strings.Contains(apiVersion, "istio.io/") || strings.HasPrefix(apiVersion, "gateway.networking") {
			return []Problem{d.problem(d.Root, "%s has no %s", apiVersion, resource)}
		}
		return nil
	}
	schema, err := compile(node)
	if err != nil {
		return []Problem{d.problem(d.Root, "the schema of %s: %v", resource, err)}
	}
	text, err := toJSON(d.Root)
	if err != nil {
		return []Problem{d.problem(d.Root, "%v", err)}
	}
	return d.fits(d.Root, string(text), schema, resource)
}

// fits holds what stands at a node, with its JSON as text, to a schema. Problems begin with what it is.
func (d Document) fits(n *yaml.Node, text string, schema *jsonschema.Schema, what string) (problems []Problem) {
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return []Problem{d.problem(n, "%s: %v", what, err)}
	}
	wrong, ok := schema.Validate(instance).(*jsonschema.ValidationError)
	if !ok {
		return nil
	}
	printer := message.NewPrinter(language.English)
	for _, leaf := range leaves(wrong) {
		at := leaf.InstanceLocation
		if extra, ok := leaf.ErrorKind.(*kind.AdditionalProperties); ok {
			at = append(slices.Clone(at), extra.Properties[0])
		}
		problems = append(problems, d.problem(locate(n, at), "%s: %s: %s", what,
			strings.Join(leaf.InstanceLocation, "."), leaf.ErrorKind.LocalizedString(printer)))
	}
	return problems
}

// compile makes a validator of an OpenAPI schema, whose keywords are those of JSON Schema's fourth draft.
func compile(node *yaml.Node) (*jsonschema.Schema, error) {
	text, err := toJSON(node)
	if err != nil {
		return nil, err
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if root, ok := resource.(map[string]any); ok {
		if fields, ok := root["properties"].(map[string]any); ok {
			for _, name := range []string{"apiVersion", "kind", "metadata"} { // which not every definition repeats
				fields[name] = map[string]any{}
			}
		}
	}
	closeFields(resource)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4)
	if err := c.AddResource("crd.json", resource); err != nil {
		return nil, err
	}
	return c.Compile("crd.json")
}

// closeFields forbids the fields that an object's schema does not name: the API server drops them. What oneOf and the like
// add is about fields that are named beside it.
func closeFields(schema any) {
	object, ok := schema.(map[string]any)
	if !ok {
		return
	}
	if fields, ok := object["properties"].(map[string]any); ok {
		if _, open := object["additionalProperties"]; !open && object["x-kubernetes-preserve-unknown-fields"] != true {
			object["additionalProperties"] = false
		}
		for _, field := range fields {
			closeFields(field)
		}
	}
	closeFields(object["items"])
	closeFields(object["additionalProperties"])
}

// leaves are the innermost errors, and each `oneOf`, `anyOf` or `not` as a whole.
func leaves(e *jsonschema.ValidationError) (list []*jsonschema.ValidationError) {
	switch e.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf, *kind.Not:
		return append(list, e)
	}
	if len(e.Causes) == 0 {
		return append(list, e)
	}
	for _, cause := range e.Causes {
		list = append(list, leaves(cause)...)
	}
	return list
}
