package apis

import (
	"bytes"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/json"
)

// kubernetesKinds makes an empty object for each apiVersion and kind.
var kubernetesKinds = map[string]func() any{
	"v1/ConfigMap":                              func() any { return &core.ConfigMap{} },
	"v1/Namespace":                              func() any { return &core.Namespace{} },
	"v1/Pod":                                    func() any { return &core.Pod{} },
	"v1/Secret":                                 func() any { return &core.Secret{} },
	"v1/Service":                                func() any { return &core.Service{} },
	"v1/ServiceAccount":                         func() any { return &core.ServiceAccount{} },
	"apps/v1/DaemonSet":                         func() any { return &apps.DaemonSet{} },
	"apps/v1/Deployment":                        func() any { return &apps.Deployment{} },
	"apps/v1/StatefulSet":                       func() any { return &apps.StatefulSet{} },
	"batch/v1/Job":                              func() any { return &batch.Job{} },
	"networking.k8s.io/v1/NetworkPolicy":        func() any { return &networking.NetworkPolicy{} },
	"rbac.authorization.k8s.io/v1/Role":         func() any { return &rbac.Role{} },
	"gateway.networking.k8s.io/v1/Gateway":      func() any { return &gateway.Gateway{} },
	"gateway.networking.k8s.io/v1/GatewayClass": func() any { return &gateway.GatewayClass{} },
	"gateway.networking.k8s.io/v1/HTTPRoute":    func() any { return &gateway.HTTPRoute{} },
}

// objectMeta is what every Kubernetes object has besides what is its kind's.
type objectMeta struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   meta.ObjectMeta `json:"metadata"`
	Spec       any             `json:"spec"`
}

// object checks a Kubernetes object: its kind's type, and the schema of its custom resource where it is one.
func (d Document) object() []Problem {
	apiVersion, kind := value(d.Root, "apiVersion"), value(d.Root, "kind")
	group, _, _ := strings.Cut(apiVersion, "/")
	var problems []Problem
	if message, ok := istioKinds[group+"/"+kind]; ok {
		problems = d.strict(&objectMeta{})
		spec := child(d.Root, "spec")
		if spec == nil {
			return append(problems, d.problem(d.Root, "%s without a spec", kind))
		}
		problems = append(problems, d.istio(spec, message)...)
	} else if empty, ok := kubernetesKinds[apiVersion+"/"+kind]; ok {
		problems = d.strict(empty())
	} else {
		return []Problem{d.problem(child(d.Root, "kind"), "nobody checks %s of %s: add it to build/apis, or say in elsewhere (build/apis/check.go) who does",
			kind, apiVersion)}
	}
	if name := child(child(d.Root, "metadata"), "name"); name == nil || !dnsName.MatchString(name.Value) {
		problems = append(problems, d.problem(d.Root, "metadata.name is missing, or no DNS name: lower case letters, digits, - and ."))
	}
	return append(problems, d.customResource(apiVersion, kind)...)
}

var (
	dnsName   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	fieldPath = regexp.MustCompile(`field "([^"]*)"`)
	pathStep  = regexp.MustCompile(`[^.\[\]]+`)
)

// strict decodes the document as the API server does when asked to be strict.
func (d Document) strict(object any) (problems []Problem) {
	text, err := toJSON(d.Root)
	if err != nil {
		return []Problem{d.problem(d.Root, "%v", err)}
	}
	unknown, err := json.UnmarshalStrict(bytes.TrimSpace(text), object, json.DisallowUnknownFields, json.DisallowDuplicateFields)
	if err != nil {
		unknown = append(unknown, err)
	}
	for _, err := range unknown {
		at := (*yaml.Node)(nil)
		if m := fieldPath.FindStringSubmatch(err.Error()); m != nil {
			at = locate(d.Root, pathStep.FindAllString(m[1], -1))
		}
		problems = append(problems, d.problem(at, "%s: %v", value(d.Root, "kind"), err))
	}
	return problems
}
