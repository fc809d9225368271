package texts

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// held names, for each page, the tests that run or check its fenced blocks, by their language. What a page shows without
// a test is under unheld, with the reason.
var held = map[string]map[string]string{
	"README.md":                       {"yaml": "TestExcerpts", "text": "TestDemo", "indented": "TestFrontPageCommands"},
	"docs/configuration.md":           {"json": "TestPagesShowWhatIsParsed"},
	"docs/embedded-gateway.md":        {"sh": "TestPage", "text": "TestPage", "jsonl": "TestPage"},
	"docs/hostsim-races.md":           {"go": "TestReadmesShowTests"},
	"docs/hostsim-suites.md":          {"sh": "TestPagesNameFlagsThatAreThere", "yaml": "TestPageHasSuites", "text": "TestPageHasSuites"},
	"docs/install.md":                 {"sh": "TestRelease", "cosign": "TestSigning", "oras": "TestSigning"},
	"docs/many-gateways.md":           {"json": "TestPagesShowWhatIsParsed"},
	"docs/move-off-tinygo.md":         {"sh": "TestMoveOffTinyGo", "go": "TestMoveOffTinyGo"},
	"docs/operations.md":              {"sh": "TestOperationsPage"},
	"docs/recordings.md":              {"sh": "TestRecordingsPage", "text": "TestRecordingsPage", "diff": "TestCheckShowsTheDifference"},
	"docs/replay.md":                  {"sh": "TestReplayPage", "text": "TestReplayPage"},
	"docs/traces.md":                  {"sh": "TestTracesPage", "text": "TestTracesPage", "jsonl": "TestTracesPageRows"},
	"docs/why-this-replica.md":        {"jsonl": "TestPagesShowWhatIsParsed"},
	"examples/clients/README.md":      {"sh": "TestReadmeCommands", "text": "TestReadmeCommands", "python": "TestReadmeExcerpts", "js": "TestReadmeExcerpts", "yaml": "TestReadmeExcerpts"},
	"examples/coraza/README.md":       {"sh": "TestReadmeInspects", "text": "TestReadmeInspects"},
	"examples/envoy/README.md":        {"sh": "TestReadmeCommands", "text": "TestReadmeCommands", "json": "TestPagesShowWhatIsParsed", "yaml": "TestReadmeExcerpt"},
	"examples/istio/README.md":        {"yaml": "TestRepository"},
	"examples/other-plugin/README.md": {"sh": "TestReadme", "text": "TestReadme", "go": "TestReadmesShowTests"},
	"examples/quickstart/README.md":   {"sh": "TestReadme", "text": "TestReadme"},
	"examples/slurm/README.md":        {"sh": "TestReadmeCommands", "bash": "TestLaunchRouter"},
	"examples/vllm/README.md":         {"yaml": "TestAdditionsFit"},
	"examples/vllm-router/README.md":  {"sh": "TestReadmeCommands", "json": "TestPagesShowWhatIsParsed"},
	"hostsim/README.md":               {"sh": "TestHostsimsReadme", "text": "TestHostsimsReadme", "yaml": "TestHostsimsReadme", "go": "TestReadmesShowTests", "output": "TestExploreFindsALostUpdate"},
}

// unheld are the languages of blocks that no test runs, each with the reason.
var unheld = map[string]string{
	"console": "typed by the reader: what installs from the internet, never ends, or runs another's program",
	"sh skip": "asks for a cluster, or runs the tests themselves",
	"figure":  "a drawing",
}

var (
	block    = regexp.MustCompile("(?ms)^ *```(.*?)\n.*?^ *```$")
	indented = regexp.MustCompile(`(?m)^\n {4}\S`)
)

// Each block of each page, fenced or indented, is run or checked by a test that reads the page.
func TestBlocksAreHeld(t *testing.T) {
	tests := map[string][]string{} // the folders of each test, and their test code
	code := map[string]string{}
	for _, file := range files(t, "_test.go") {
		text, folder := read(t, file), filepath.Dir(file)
		code[folder] += text
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(text, -1) {
			tests[m[1]] = append(tests[m[1]], folder)
		}
	}
	seen := map[string]bool{}
	for _, file := range files(t, ".md") {
		page, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		page = filepath.ToSlash(page)
		var languages []string
		for _, m := range block.FindAllStringSubmatch(read(t, file), -1) {
			languages = append(languages, m[1])
		}
		if indented.MatchString(block.ReplaceAllString(read(t, file), "")) {
			languages = append(languages, "indented")
		}
		for _, language := range languages {
			name := held[page][language]
			seen[page+" "+language] = true
			switch {
			case unheld[language] != "":
			case language == "":
				t.Errorf("%s has a block without a language, which is to be sh, yaml, text, ...", page)
			case name == "":
				t.Errorf("%s has a block of %q that no test holds: name the test in held", page, language)
			case !slices.ContainsFunc(tests[name], func(folder string) bool { return reads(code[folder], page, folder) }):
				t.Errorf("%s: no test %s reads it", page, name)
			}
		}
	}
	for page, languages := range held {
		for language := range languages {
			if !seen[page+" "+language] {
				t.Errorf("%s has no block of %q, held says so", page, language)
			}
		}
	}
}

// reads tells whether the tests of a folder name the page: by its path or, in its own folder, by its name; or all pages.
func reads(code, page, folder string) bool {
	own := filepath.Join(root, filepath.Dir(page)) == folder && strings.Contains(code, `"`+filepath.Base(page)+`"`)
	return own || strings.Contains(code, page) || strings.Contains(code, ".md\"") && strings.Contains(code, "WalkDir") ||
		strings.Contains(code, `"`+strings.Join(strings.Split(page, "/"), `", "`)+`"`)
}
