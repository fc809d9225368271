package plugin

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

var update = flag.Bool("update", false, "rewrite the table of docs/configuration.md from the schema")

const (
	tableBegins = "<!-- configuration: go test ./plugin -run TestPageTells -update -->\n"
	tableEnds   = "<!-- end of configuration -->\n"
)

// The table of configuration keys is the schema's, word for word.
func TestPageTellsTheConfiguration(t *testing.T) {
	schema := readSchema(t)
	table := "| key | default | |\n|---|---|---|\n" + rows(t, schema, schema, "")
	const path = "../docs/configuration.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegins)
	old, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok || !ok2 {
		t.Fatalf("%s lacks %q or %q", path, tableBegins, tableEnds)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+tableBegins+table+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != table {
		t.Errorf("the table is not the schema's; run: go test ./plugin -run TestPageTells -update\n%s", table)
	}
}

// README says what each policy does.
func TestReadmeTellsThePolicies(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Policies\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range policyNames {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("README's section on policies lacks %s", name)
		}
	}
}

// README's tables have every reason, every metric and every kind of error, and the
// page about decisions every reason and policy.
func TestPagesTellReasonsAndMetrics(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	readme, page := read("../README.md"), read("../docs/why-this-replica.md")
	has := func(where, text, word string) {
		t.Helper()
		if !strings.Contains(text, word) {
			t.Errorf("%s lacks %s", where, word)
		}
	}
	for i := range policy.NumReasons {
		name := "`" + policy.Reason(i).String() + "`"
		has("README.md", readme, name)
		has("docs/why-this-replica.md", page, name)
	}
	for _, name := range policyNames {
		has("docs/why-this-replica.md", page, "`"+name+"`")
	}
	symptoms := read("../docs/troubleshooting.md")
	for _, kind := range faultNames {
		has("README.md", readme, kind)
		has("docs/troubleshooting.md", symptoms, "\n| `"+kind+"` |")
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string]bool{}
	for _, name := range sources {
		if !strings.HasSuffix(name, "_test.go") {
			for _, m := range regexp.MustCompile(`"pinwheel_[a-z_]+`).FindAllString(read(name), -1) {
				metrics[m[1:]] = true
			}
		}
	}
	if len(metrics) < 10 {
		t.Fatalf("found %d metrics in the sources", len(metrics))
	}
	for m := range metrics {
		has("README.md", readme, "`"+m+"{")
	}
}

// rows renders the properties of an object, nested objects after their parent,
// in the order of the schema's text.
func rows(t *testing.T, schema, object any, prefix string) (text string) {
	properties := at(object, "properties").(map[string]any)
	for _, key := range keysInOrder(t, properties) {
		v := resolve(schema, properties[key])
		name := prefix + key
		if at(v, "properties") != nil {
			text += rows(t, schema, v, name+".")
			continue
		}
		text += fmt.Sprintf("| `%s` | %s | %s |\n", name, defaultOf(properties[key]), describe(schema, properties[key]))
		if item := resolve(schema, at(v, "items")); at(item, "oneOf") != nil && prefix == "" {
			text += rows(t, schema, at(item, "oneOf", "1"), name+"[].")
		} else if at(item, "properties") != nil {
			text += rows(t, schema, item, name+"[].")
		}
	}
	return text
}

func resolve(schema, v any) any {
	ref, ok := at(v, "$ref").(string)
	if !ok {
		return v
	}
	return at(schema, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

func describe(schema, v any) string {
	text, _ := at(v, "description").(string)
	if def, ok := at(resolve(schema, v), "description").(string); ok && def != text {
		text = strings.TrimSpace(text + " " + def)
	}
	if enum, ok := at(v, "enum").([]any); ok && len(enum) > 1 {
		var names []string
		for _, e := range enum {
			names = append(names, fmt.Sprintf("`%v`", e))
		}
		text = strings.Join(names, " or ") + ". " + text
	}
	return strings.ReplaceAll(text, "|", "\\|")
}

func defaultOf(v any) string {
	d := at(v, "default")
	if d == nil {
		return ""
	}
	b, _ := json.Marshal(d)
	return "`" + string(b) + "`"
}

// keysInOrder returns the keys as the schema's text has them, which maps forget.
func keysInOrder(t *testing.T, properties map[string]any) []string {
	text, err := os.ReadFile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for k := range properties {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return bytes.Index(text, []byte(`"`+a+`": {`)) - bytes.Index(text, []byte(`"`+b+`": {`))
	})
	return keys
}

// jsonBlock is a block of JSON on a page, in a list or not, or of lines of JSON.
var jsonBlock = regexp.MustCompile("(?ms)^ *```(jsonl?)\n(.*?)^ *```$")

// JSON on the pages is a configuration that is taken, and a line of the decision log has the log's keys.
func TestPagesShowWhatIsParsed(t *testing.T) {
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "target") {
			return fs.SkipDir
		} else if filepath.Ext(path) != ".md" {
			return nil
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range jsonBlock.FindAllSubmatch(page, -1) {
			found++
			var err error
			if string(m[1]) == "json" {
				_, err = ParseConfig(m[2])
			} else if bytes.Contains(m[2], []byte(`"pinwheel"`)) {
				d := json.NewDecoder(bytes.NewReader(m[2]))
				d.DisallowUnknownFields()
				err = d.Decode(new(decisionLine))
			}
			if err != nil {
				t.Errorf("%s: %v in\n%s", path, err, m[2])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 3 {
		t.Errorf("only %d blocks found", found)
	}
}
