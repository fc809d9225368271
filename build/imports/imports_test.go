// Package imports holds the rules about who may import whom.
package imports

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/pinwheel-proxy/pinwheel/"

// rule says what the packages below a folder may import besides themselves. The
// longest folder that fits a package decides.
type rule struct {
	folder string
	// standard lists the packages of the standard library that are allowed; nil
	// allows all.
	standard []string
	// others are prefixes of import paths; "./" stands for this module.
	others []string
}

var rules = []rule{
	// A decision is a value: nothing here can read a clock, a file or a random
	// number, or hold state for another goroutine.
	{"policy", []string{"encoding/binary", "errors", "math", "math/bits", "slices", "sort"}, nil},
	{"policy/policytest", nil, nil},
	{"build/version", []string{}, nil},
	// No fmt, encoding/json, reflect, net/netip or gjson: every start of a gateway compiles what is imported here.
	{"plugin", []string{"encoding/base64", "encoding/binary", "errors", "maps", "math/bits", "math/rand/v2", "slices", "strconv", "strings", "time", "unicode", "unicode/utf16", "unicode/utf8", "unsafe"},
		[]string{"./policy", "./plugin/abi", "./plugin/etcd", "./plugin/json", "./build/version", "github.com/tetratelabs/proxy-wasm-go-sdk/"}},
	{"plugin/etcd", []string{"encoding/base64", "strconv", "strings"}, []string{"./plugin/json"}},
	{"plugin/json", []string{"strconv", "strings", "unicode/utf16", "unicode/utf8", "unsafe"}, nil},
	{"plugin/abi", nil, []string{"github.com/tetratelabs/proxy-wasm-go-sdk/"}},
	// For plugins that know nothing of Pinwheel.
	{"plugin/abi/full", nil, []string{"./plugin/abi/internal/hostcall", "github.com/tetratelabs/proxy-wasm-go-sdk/"}},
	{"plugin/wasm", nil, []string{"./plugin"}},
	{"hostsim", nil, []string{"github.com/tetratelabs/wazero"}},
	{"hostsim/hosttest", nil, []string{"./hostsim"}},
	{"hostsim/exchange", nil, []string{"./hostsim"}},
	{"hostsim/suite", nil, []string{"./hostsim", "github.com/tidwall/gjson", "go.yaml.in/yaml/v4"}},
	{"hostsim/trace", nil, nil},
	{"hostsim/replica", nil, nil},
	{"hostsim/replay", nil, []string{"./hostsim", "./hostsim/trace", "./hostsim/replica"}},
	// Nobody else draws charts.
	{"hostsim/replay/report", nil, []string{"./hostsim/replay", "github.com/go-analyze/charts/chartdraw"}},
	{"hostsim/gateway", nil, []string{"./hostsim"}},
	// Its replays also decide by policy in the process, to compare and for speed.
	{"hostsim/cmd/hostsim", nil, []string{"./hostsim", "./policy", "./build/version", "github.com/spf13/cobra"}},
	{"build", nil, []string{"./hostsim", "./build"}},
	// A module of its own: what talks to registries stays out of ours.
	{"build/ship", nil, []string{"github.com/google/go-containerregistry", "github.com/CycloneDX/cyclonedx-go"}},
	// A module of its own, too: the Compose specification's library and what that needs.
	{"build/compose", nil, []string{"github.com/compose-spec/compose-go/v2"}},
	// A module of its own (its go.mod): what Envoy, Istio and Kubernetes define stays out of ours.
	{"build/apis", nil, []string{"./plugin", "github.com/envoyproxy/go-control-plane/envoy", "istio.io/api", "k8s.io/api", "k8s.io/apimachinery",
		"sigs.k8s.io/gateway-api", "sigs.k8s.io/json", "google.golang.org/protobuf", "github.com/santhosh-tekuri/jsonschema/v6",
		"golang.org/x/text", "go.yaml.in/yaml/v4"}},
	// A module of its own: the format of Go's benchmarks, and benchstat.
	{"build/bench", nil, []string{"golang.org/x/perf/benchfmt"}},
	// A module of its own: a browser's protocol is large.
	{"build/browser", nil, []string{"github.com/chromedp/"}},
	{"examples/other-plugin/go", nil, []string{"./plugin/abi/full", "github.com/tetratelabs/proxy-wasm-go-sdk/"}},
	// A module of its own (its go.mod): Coraza's dependencies stay out of ours.
	{"examples/coraza/plugin", nil, []string{"./plugin/abi/full", "github.com/corazawaf/coraza-proxy-wasm/wasmplugin", "github.com/tetratelabs/proxy-wasm-go-sdk/"}},
	// A module of its own: Grafana's types and the browser of its tests are nobody else's need.
	{"examples/grafana", nil, []string{"github.com/grafana/grafana-foundation-sdk/go/"}},
	// A module of its own: Kubernetes' packages stay out of ours.
	{"examples/envoy-gateway/check", nil, []string{"github.com/envoyproxy/gateway", "go.yaml.in/yaml/v4", "k8s.io/", "sigs.k8s.io/"}},
	{"examples/grafana/kubernetes", nil, []string{"github.com/prometheus-operator/prometheus-operator/pkg/apis/", "k8s.io/apimachinery/", "sigs.k8s.io/yaml"}},
	{"examples/envoy-gateway/standalone", nil, []string{"./build/envoy", "./examples", "github.com/google/go-containerregistry/",
		"go.yaml.in/yaml/v4", "golang.org/x/net/dns/dnsmessage"}},
	// A module of its own: gRPC and Envoy's types stay out of ours.
	{"examples/envoy/bench/extproc", nil, []string{"./policy", "github.com/envoyproxy/go-control-plane/envoy", "google.golang.org/grpc", "google.golang.org/protobuf"}},
	{"examples", nil, []string{"./hostsim", "./build/envoy", "./build/vllmrouter", "./examples"}},
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || name == "dist" || strings.HasPrefix(name, ".") && name != ".." && path != "../..") {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			folder, _ := filepath.Rel("../..", filepath.Dir(path))
			if r := ruleOf(filepath.ToSlash(folder)); r != nil {
				seen[r.folder] = true
				check(t, path, r)
			} else {
				t.Errorf("%s: no rule for this folder", path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !seen[r.folder] {
			t.Errorf("a rule for %s, which has no Go file", r.folder)
		}
	}
}

func ruleOf(folder string) (best *rule) {
	for i := range rules {
		r := &rules[i]
		if (folder == r.folder || strings.HasPrefix(folder, r.folder+"/")) && (best == nil || len(r.folder) > len(best.folder)) {
			best = r
		}
	}
	return best
}

func check(t *testing.T, path string, r *rule) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if !allowed(imported, r) {
			t.Errorf("%s imports %s, which %s may not", path, imported, r.folder)
		}
	}
}

func allowed(imported string, r *rule) bool {
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") { // the standard library
		if r.standard == nil {
			return true
		}
		for _, s := range r.standard {
			if imported == s {
				return true
			}
		}
		return false
	}
	if own := module + r.folder; imported == own || strings.HasPrefix(imported, own+"/") {
		return true
	}
	for _, o := range r.others {
		o = strings.Replace(o, "./", module, 1)
		if imported == o || strings.HasPrefix(imported, strings.TrimSuffix(o, "/")+"/") {
			return true
		}
	}
	return false
}
