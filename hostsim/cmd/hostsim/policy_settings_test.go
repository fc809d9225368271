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
