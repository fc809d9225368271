// Package vllmrouter holds the page about moving over from vllm-router to what is true. What needs the real vllm-router
// has the build tag peer: make peer.
package vllmrouter

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// tableUnder returns the cells of the first table under that heading of README.md, without its two head lines.
func tableUnder(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, under, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("README.md has no %q", heading)
	}
	for line := range strings.Lines(under) {
		line = strings.TrimSpace(line)
		switch cells := strings.Split(strings.Trim(line, "|"), "|"); {
		case strings.HasPrefix(line, "|"):
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		case len(rows) > 0 || strings.HasPrefix(line, "## "):
			if len(rows) < 3 {
				t.Fatalf("no table under %q", heading)
			}
			return rows[2:]
		}
	}
	return rows[min(2, len(rows)):]
}

// TestMain plays curl when the README's commands call it, for a machine need not have it.
func TestMain(m *testing.M) {
	envoytest.ActAsCurl()
	os.Exit(m.Run())
}

// The README's commands run as printed, in one shell, but for the ports.
func TestReadmeCommands(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("pinwheel.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var ports []string
	for _, p := range []string{"30000", "8001", "8002", "8003"} {
		free, err := envoytest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, "127.0.0.1:"+p, fmt.Sprint("127.0.0.1:", free))
	}
	move := strings.NewReplacer(ports...).Replace
	moved := filepath.Join(dir, "pinwheel.json")
	if err := os.WriteFile(moved, []byte(move(string(config))), 0o644); err != nil {
		t.Fatal(err)
	}
	blocks := envoytest.ShellBlocks(string(page))
	if len(blocks) != 1 {
		t.Fatalf("README.md has %d blocks of commands, want one", len(blocks))
	}
	script := strings.NewReplacer(
		"make wasm build", ":", // the test runs on what is there
		"examples/vllm-router/pinwheel.json", moved,
		"dist/replicas &", filepath.Join(dir, "replicas")+move(" 127.0.0.1:8001 127.0.0.1:8002 127.0.0.1:8003 &"),
		"dist/replicas", filepath.Join(dir, "replicas"),
	).Replace(move(blocks[0]))
	path, err := envoytest.PathWithCurl(dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := envoytest.RunScript(t.Context(), root, script, "PATH="+path)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := regexp.MustCompile(`(?mi)^x-pinwheel-([a-z]+): (.*?)\r?$`).FindAllStringSubmatch(out, -1)
	replicas, reasons := map[string]bool{}, ""
	for _, m := range said {
		if strings.EqualFold(m[1], "replica") {
			replicas[m[2]] = true
		} else {
			reasons += m[2] + " "
		}
	}
	if len(replicas) != 1 || reasons != "placed pinned " || !strings.Contains(out, `{"status":"ok","session_id":"planner"}`) {
		t.Errorf("want one replica, placed and pinned, and a session finished; printed:\n%s", out)
	}
}

// code are the code spans of a cell.
func code(cell string) (spans []string) {
	for i, s := range strings.Split(cell, "`") {
		if i%2 == 1 {
			spans = append(spans, s)
		}
	}
	return spans
}

// The keys that the page sends readers to are keys of the configuration.
func TestKeysExist(t *testing.T) {
	text, err := os.ReadFile("../../plugin/config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	collect(schema, schema, "", keys)
	if !keys["session.idle_timeout"] || !keys["pools[].cluster"] || !keys["replicas[].weight"] {
		t.Fatalf("the schema is not understood: %v", keys)
	}
	named := 0
	for _, row := range tableUnder(t, "## Flags") {
		if len(row) != 3 || len(code(row[0])) == 0 || row[1]+row[2] == "" {
			t.Errorf("not flags, keys, reason: %q", row)
			continue
		}
		for _, key := range code(row[1]) {
			named++
			if !keys[key] {
				t.Errorf("%s is sent to %s, which is no key", row[0], key)
			}
		}
	}
	if named < 15 {
		t.Errorf("only %d keys named", named)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range code(string(page)) {
		for _, object := range []string{"session.", "target.", "release.", "health.", "discovery.", "decision_log.", "cache_aware.", "consistent_hash.", "pools[]."} {
			if strings.HasPrefix(span, object) && !keys[span] {
				t.Errorf("%s is no key", span)
			}
		}
	}
}

// collect adds the paths of all properties below v.
func collect(schema, v map[string]any, path string, keys map[string]bool) {
	if ref, ok := v["$ref"].(string); ok {
		var at any = schema
		for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(map[string]any)[step]
		}
		collect(schema, at.(map[string]any), path, keys)
	}
	properties, _ := v["properties"].(map[string]any)
	for name, property := range properties {
		key := strings.TrimPrefix(path+"."+name, ".")
		keys[key] = true
		collect(schema, property.(map[string]any), key, keys)
	}
	if items, ok := v["items"].(map[string]any); ok {
		collect(schema, items, path+"[]", keys)
	}
	alternatives, _ := v["oneOf"].([]any)
	for _, a := range alternatives {
		if a, ok := a.(map[string]any); ok {
			collect(schema, a, path, keys)
		}
	}
}
