package suite

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the recorded output in testdata")

// probe is the path of the guest that does what its configuration says.
var probe string

// A plugin that hangs ends by itself, unless the suite says otherwise.
func TestCallTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"cases: [{name: a}]":                                                     callTimeout,
		"gateway: {call_timeout: 0}\ncases: [{name: a}]":                         0,
		"gateway: {call_timeout: 3s}\ncases: [{name: a, gateway: {workers: 2}}]": 3 * time.Second,
		"cases: [{name: a, gateway: {call_timeout: 5s}}]":                        5 * time.Second,
		"cases: [{name: a, gateway: {workers: 2}}]":                              callTimeout,
	} {
		s := parse(t, text)
		if got := s.cases[0].own.config.CallTimeout; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "suite-")
	if err != nil {
		panic(err)
	}
	probe = filepath.Join(dir, "probe.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", probe, "../testdata/guests/probe")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		panic(string(text))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// load reads a suite of testdata that has no mistake.
func load(t *testing.T, name string) *Suite {
	t.Helper()
	s, err := Load(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// execute runs a suite with the probe.
func execute(t *testing.T, s *Suite, o Options) []*Result {
	t.Helper()
	o.Wasm = probe
	results, err := s.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// parse reads a suite's text; the files that it names are in testdata.
func parse(t *testing.T, text string) *Suite {
	t.Helper()
	s, err := Parse("testdata/suite.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// recorded compares got with a file of testdata, or rewrites that.
func recorded(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("not as recorded in %s (go test ./hostsim/suite -update):\n%s", path, diff(string(want), got))
	}
}

func TestPassing(t *testing.T) {
	for _, name := range []string{"passes.yaml", "shared.yaml"} {
		s := load(t, name)
		results := execute(t, s, Options{})
		if len(results) != len(s.Cases()) || len(results) == 0 {
			t.Errorf("%s: %d results of %d cases", name, len(results), len(s.Cases()))
		}
		for _, r := range results {
			if !r.OK {
				t.Errorf("%s: %v", r.Name, r.Problems)
			}
		}
	}
}

// Each case of fails.yaml fails, with the message on record.
func TestFailing(t *testing.T) {
	var b strings.Builder
	results := execute(t, load(t, "fails.yaml"), Options{})
	for _, r := range append(results, execute(t, load(t, "shared_fails.yaml"), Options{})...) {
		fmt.Fprintf(&b, "%s\n", r.Name)
		if r.OK {
			t.Errorf("%s passes", r.Name)
		}
		for _, p := range r.Problems {
			p.File = filepath.Base(p.File)
			fmt.Fprintf(&b, "  %s\n", p)
			if p.Diff != "" {
				fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(p.Diff, "\n", "\n    "))
			}
		}
	}
	recorded(t, "fails.txt", b.String())
}

// script splits invalid.txt into its parts.
func script(t *testing.T) (preface string, parts []invalidPart) {
	t.Helper()
	text, err := os.ReadFile("testdata/invalid.txt")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "\n=== ")
	for _, b := range blocks[1:] {
		title, rest, _ := strings.Cut(b, "\n")
		yaml, _, _ := cutLast(rest, "---")
		parts = append(parts, invalidPart{title, yaml})
	}
	return blocks[0], parts
}

// cutLast cuts around the last line that is sep.
func cutLast(s, sep string) (before, after string, ok bool) {
	lines := strings.SplitAfter(s, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimSuffix(lines[i], "\n") == sep {
			return strings.Join(lines[:i], ""), strings.Join(lines[i+1:], ""), true
		}
	}
	return s, "", false
}

type invalidPart struct{ title, yaml string }

// Each suite of invalid.txt is refused, with the messages on record.
func TestInvalid(t *testing.T) {
	preface, parts := script(t)
	b := preface
	for _, p := range parts {
		b += "\n=== " + p.title + "\n" + p.yaml + "---\n"
		_, err := Parse("testdata/s.yaml", []byte(p.yaml))
		if err == nil {
			t.Errorf("%s: accepted", p.title)
			continue
		}
		b += strings.ReplaceAll(err.Error(), "testdata/", "") + "\n"
	}
	recorded(t, "invalid.txt", b)
}

// What stands first in a message leads an editor to the place.
func TestMessagesHaveAPlace(t *testing.T) {
	_, parts := script(t)
	place := regexp.MustCompile(`^testdata/s\.yaml:[1-9][0-9]*:[1-9][0-9]*: .+$`)
	for _, p := range parts {
		_, err := Parse("testdata/s.yaml", []byte(p.yaml))
		for line := range strings.SplitSeq(fmt.Sprint(err), "\n") {
			if !place.MatchString(line) {
				t.Errorf("%s: %q", p.title, line)
			}
		}
	}
}

// A suite has the same outcome each time, down to the log.
func TestRunsAreTheSame(t *testing.T) {
	var runs [2]string
	for i := range runs {
		for _, r := range execute(t, load(t, "passes.yaml"), Options{Only: regexp.MustCompile("whole|asks|two streams|another|crash")}) {
			runs[i] += r.Name + "\n"
			for _, e := range r.Log {
				runs[i] += e.Time.String() + " " + entryText(e) + "\n"
			}
		}
	}
	if runs[0] != runs[1] {
		t.Errorf("two runs differ:\n%s", diff(runs[0], runs[1]))
	}
}

func TestOnlySelectsCases(t *testing.T) {
	names := func(s *Suite, only string) (list []string) {
		for _, r := range execute(t, s, Options{Only: regexp.MustCompile(only)}) {
			list = append(list, r.Name)
		}
		return list
	}
	if got := names(load(t, "passes.yaml"), "^a c[ru]"); !slices.Equal(got, []string{"a cut", "a crash"}) {
		t.Errorf("%q", got)
	}
	// The second case of a shared suite counts on what the first one did.
	results := execute(t, load(t, "shared.yaml"), Options{Only: regexp.MustCompile("second")})
	if len(results) != 1 || results[0].Name != "second" || !results[0].OK {
		t.Errorf("%+v", results)
	}
}

// Streams that a case leaves open end with it: as of a client that leaves, or normally where the response was complete.
func TestOpenStreamsEndWithTheCase(t *testing.T) {
	results := execute(t, parse(t, `
plugin: {config: log prop response$code_details}
cases:
  - {name: downstream_remote_disconnect, steps: [{stream: a, request: {}}]}
  - {name: via_upstream, steps: [{stream: a, request: {}, response: {}}]}
`), Options{})
	for _, r := range results {
		last := ""
		for _, e := range r.Log {
			if strings.HasPrefix(e.Message, "prop ") {
				last = e.Message
			}
		}
		if !r.OK || !strings.HasSuffix(last, " "+r.Name) {
			t.Errorf("%s: %q %v", r.Name, last, r.Problems)
		}
	}
}
