package main

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
)

// The defaults are the plugin's, as its schema has them.
func TestPolicyDefaults(t *testing.T) {
	text, err := os.ReadFile("../../../plugin/config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(schemaDefaults(schema))
	if err != nil {
		t.Fatal(err)
	}
	var want policySettings
	if err := json.Unmarshal(config, &want); err != nil {
		t.Fatal(err)
	}
	if got, err := readPolicySettings(nil, ""); err != nil || !reflect.DeepEqual(*got, want) || got.CacheAware.MaxPrefixes == 0 {
		t.Errorf("%+v, want %+v, %v", *got, want, err)
	}
}

// What is wrong is told in one line: where, what, and what is allowed.
func TestPolicySettingsRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{"session":{"max_sessions":"many"}}`:    "configuration: session.max_sessions: string is not what belongs there; allowed: a whole number, 0 or more",
		`{"health":{"failures":-1}}`:             "configuration: health.failures: number -1 is not what belongs there; allowed: a whole number, 0 or more",
		`{"session":{"idle_timeout":90}}`:        `configuration: session.idle_timeout: 90 is not what belongs there; allowed: a string such as "90s" or "2h"`,
		`{"health":{"cooldown":"soon"}}`:         `configuration: health.cooldown: "soon" is not what belongs there; allowed: a string such as "90s" or "2h"`,
		`{"health":{"statuses":["5xx",399]}}`:    `configuration: health.statuses: 399 is not what belongs there; allowed: a list of numbers from 400 to 599, "4xx" and "5xx"`,
		`{"health":{"statuses":[600]}}`:          `configuration: health.statuses: 600 is not what belongs there; allowed: a list of numbers from 400 to 599, "4xx" and "5xx"`,
		`{"health":{"statuses":"5xx"}}`:          `configuration: health.statuses: "5xx" is not what belongs there; allowed: a list of numbers from 400 to 599, "4xx" and "5xx"`,
		`{"health":{"statuses":null}}`:           `configuration: health.statuses: null is not what belongs there; allowed: a list of numbers from 400 to 599, "4xx" and "5xx"`,
		`{"cache_aware":7}`:                      "configuration: cache_aware: number is not what belongs there; allowed: an object",
		`{"consistent_hash":{"load_factor":[]}}`: "configuration: consistent_hash.load_factor: array is not what belongs there; allowed: a number",
		`{"policy":true}`:                        "configuration: policy: bool is not what belongs there; allowed: a string",
		`[]`:                                     "configuration: (whole configuration): array is not what belongs there; allowed: an object",
		`{"policy"`:                              "configuration: unexpected end of JSON input; allowed: a JSON object",
	} {
		if _, err := readPolicySettings([]byte(config), ""); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", config, err, want)
		}
	}
	s, err := readPolicySettings([]byte(`{"health":{"statuses":[404,"5xx",404]}}`), "")
	if h := &s.Health.Statuses; err != nil || !h.has(404) || !h.has(500) || !h.has(599) || h.has(403) || h.has(405) || h.has(600) || h.has(200) {
		t.Errorf("%v, %v", s, err)
	}
}

// schemaDefaults is the default of a schema's object, of its parts; nil where there is none.
func schemaDefaults(schema map[string]any) any {
	parts, ok := schema["properties"].(map[string]any)
	if !ok {
		return schema["default"]
	}
	all := map[string]any{}
	for name, part := range parts {
		if part, ok := part.(map[string]any); ok {
			if v := schemaDefaults(part); v != nil {
				all[name] = v
			}
		}
	}
	return all
}
