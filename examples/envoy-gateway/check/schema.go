package check

import (
	"context"
	"fmt"
	"strings"

	envoygateway "github.com/envoyproxy/gateway"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// schemas are the CRDs of Envoy Gateway's chart, Gateway API's among them, as text
// by group/version and kind, and compiled on first use.
type schemas struct {
	crds map[string]*apiextensionsv1.JSONSchemaProps
	done map[string]*schema
}

// schema is one kind at one version, in the three forms an API server keeps.
type schema struct {
	structural *structural.Structural
	openapi    validation.SchemaValidator
	rules      *cel.Validator // nil without rules
}

func loadSchemas() (*schemas, error) {
	s := &schemas{crds: map[string]*apiextensionsv1.JSONSchemaProps{}, done: map[string]*schema{}}
	for _, text := range strings.Split(string(envoygateway.GatewayCRDs), "\n---\n") {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(text), &crd); err != nil {
			return nil, fmt.Errorf("check: a CRD of Envoy Gateway's module: %w", err)
		}
		for _, v := range crd.Spec.Versions {
			if crd.Kind == "CustomResourceDefinition" && v.Schema != nil {
				s.crds[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = v.Schema.OpenAPIV3Schema
			}
		}
	}
	return s, nil
}

func (s *schemas) of(version, kind string) (*schema, error) {
	key := version + " " + kind
	if done := s.done[key]; done != nil {
		return done, nil
	}
	props := s.crds[key]
	if props == nil {
		return nil, fmt.Errorf("no CRD of Envoy Gateway's chart defines %s of %s", kind, version)
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, &internal, nil); err != nil {
		return nil, err
	}
	form, err := structural.NewStructural(&internal)
	if err != nil {
		return nil, err
	}
	openapi, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return nil, err
	}
	s.done[key] = &schema{form, openapi, cel.NewValidator(form, true, celconfig.PerCallLimit)}
	return s.done[key], nil
}

// problems does what an API server does with a new object under strict field
// validation: unknown fields, defaults, schema, lists that are maps or sets, rules.
// It changes the object.
func (s *schema) problems(object map[string]any) []problem {
	var all []problem
	unknown := pruning.PruneWithOptions(object, s.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		all = append(all, problem{path, "unknown field"})
	}
	if len(all) > 0 {
		return all
	}
	defaulting.Default(object, s.structural)
	errs := validation.ValidateCustomResource(nil, object, s.openapi)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if s.rules != nil && len(errs) == 0 { // rules are for what fits the schema
		errs, _ = s.rules.Validate(context.Background(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	}
	for _, e := range errs {
		all = append(all, problem{e.Field, e.ErrorBody()})
	}
	return all
}
