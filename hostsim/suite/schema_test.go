package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("suite.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("suite.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate holds a YAML text to the schema, as an editor does.
func validate(schema *jsonschema.Schema, text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if v, err = jsonschema.UnmarshalJSON(bytes.NewReader(asJSON)); err != nil {
		return err
	}
	return schema.Validate(v)
}

// The schema has exactly the keys that the parser knows.
func TestSchemaHasTheParsersKeys(t *testing.T) {
	var schema struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &schema); err != nil {
		t.Fatal(err)
	}
	tables := map[string][]string{
		"plugin": keys(pluginFields), "gateway": keys(gatewayFields), "answer": keys(answerFields), "when": keys(whenFields),
		"callout": keys(calloutFields), "case": keys(caseFields), "step": keys(stepFields), "request": keys(requestFields),
		"response": keys(responseFields), "bodyPlan": keys(bodyFields), "expect": keys(expectFields), "start": keys(startFields),
		"expectRequest": keys(expectRequestFields), "expectResponse": keys(expectResponseFields), "actions": keys(actionFields),
		"logLine": keys(logFields), "numberRange": keys(numberFields), "comparison": keys(matcherFields),
		"fault": keys(faultFields), "foreignFunction": keys(foreignFields),
	}
	compare := func(name string, properties map[string]any, known []string) {
		if got, want := slices.Sorted(maps.Keys(properties)), slices.Sorted(slices.Values(known)); !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %v, the parser %v", name, got, want)
		}
	}
	compare("the suite", schema.Properties, keys(suiteFields))
	for name, def := range schema.Defs {
		if known, ok := tables[name]; ok || def.Properties != nil {
			compare(name, def.Properties, known)
		}
		delete(tables, name)
	}
	for name := range tables {
		t.Errorf("the schema has no definition %s", name)
	}
}

// The schema's words are the parser's.
func TestSchemaHasTheParsersWords(t *testing.T) {
	for _, words := range [][]string{profileNames(), failurePolicies, logLevels, endReasons, outcomes, actionWords, answerFailures, statusNames()} {
		text, _ := json.Marshal(words)
		want := strings.ReplaceAll(string(text), ",", ", ")
		if !bytes.Contains(Schema, []byte(`"enum": `+want)) {
			t.Errorf("the schema lacks %s", want)
		}
	}
}

func TestSchemaAcceptsWhatTheParserAccepts(t *testing.T) {
	schema := compileSchema(t)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, name := range append(files, "example.yaml") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(schema, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Parse(name, text); err != nil {
			t.Error(err)
		}
	}
}

func TestSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	schema := compileSchema(t)
	_, parts := script(t)
	for _, p := range parts {
		beyond := strings.HasSuffix(p.title, "(beyond the schema)")
		if err := validate(schema, []byte(p.yaml)); (err == nil) != beyond {
			t.Errorf("%s: the schema says %v", p.title, err)
		}
	}
}

// Each key is in a suite that passes and in one with cases that fail.
func TestEachKeyIsTried(t *testing.T) {
	for _, names := range [][]string{{"passes.yaml", "shared.yaml"}, {"fails.yaml", "shared_fails.yaml"}} {
		seen := map[string]bool{}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			d := &decoder{file: filepath.Join("testdata", name), visited: func(object any, key string) {
				seen[fmt.Sprintf("%T %s", object, key)] = true
			}}
			d.suite(at("", d.document(text)), &Suite{base: &settings{}})
		}
		try(t, names, seen, suiteFields)
		try(t, names, seen, pluginFields)
		try(t, names, seen, gatewayFields)
		try(t, names, seen, answerFields)
		try(t, names, seen, calloutFields)
		try(t, names, seen, caseFields)
		try(t, names, seen, stepFields)
		try(t, names, seen, requestFields)
		try(t, names, seen, responseFields)
		try(t, names, seen, bodyFields)
		try(t, names, seen, expectFields)
		try(t, names, seen, expectRequestFields)
		try(t, names, seen, expectResponseFields)
		try(t, names, seen, actionFields)
		try(t, names, seen, logFields)
		try(t, names, seen, numberFields)
		try(t, names, seen, matcherFields)
		try(t, names, seen, faultFields)
		try(t, names, seen, foreignFields)
	}
}

func try[T any](t *testing.T, names []string, seen map[string]bool, fields []field[T]) {
	t.Helper()
	for _, f := range fields {
		if name := fmt.Sprintf("%T %s", new(T), f.key); !seen[name] {
			t.Errorf("%v: no %s", names, name)
		}
	}
}

// The schema's defaults are the host's.
func TestSchemaHasTheHostsDefaults(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct{ Default any }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &schema); err != nil {
		t.Fatal(err)
	}
	gateway := schema.Defs["gateway"].Properties
	for key, want := range map[string]any{
		"profile": hostsim.Profiles()[0].Name, "buffer_limit": float64(hostsim.DefaultBufferLimit), "workers": 1.0,
		"memory_limit_pages": float64(hostsim.DefaultMemoryLimitPages), "failure_policy": failurePolicies[hostsim.FailClosed],
		"log_level": hostsim.LogTrace.String(), "seed": 0.0, "allow_on_headers_stop_iteration": false,
	} {
		if got := gateway[key].Default; got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	if !strings.Contains(string(Schema), `"Waiting time of fail_reload. 0 or none is `+hostsim.DefaultReloadBackoff.String()+`."`) {
		t.Error("reload_backoff tells another default")
	}
	if !strings.Contains(string(Schema), ". None is "+callTimeout.String()+", 0 is without limit") {
		t.Error("call_timeout tells another default")
	}
}
