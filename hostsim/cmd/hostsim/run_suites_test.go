package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/suite"
)

// write makes a suite of the text, for the gateway tests' plugin.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "GUEST", guest(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const twoCases = `plugin: {wasm: GUEST}
cases:
  - name: answers by itself
    request: {headers: {x-do: reply}}
    expect: {outcome: replied, response: {status: 418}}
  - name: lets it go on
    request: {path: /hello}
    expect: {response: {status: 404}}
`

var milliseconds = regexp.MustCompile(`(?m) +[0-9]+ ms| +[0-9.]+ s$`)

// plainTimes takes out what is never the same.
func plainTimes(s string) string { return milliseconds.ReplaceAllString(s, " TIME") }

func TestRunPrintsALineACase(t *testing.T) {
	path := write(t, "two.yaml", twoCases)
	code, stdout, stderr := command("run", path)
	want := `ok    answers by itself TIME
FAIL  lets it go on TIME
      PATH:8:33: cases[1].expect.response.status: response status
        - 404
        + 200
      log
        worker 0 info: upstream= cluster= details=via_upstream
2 cases, 1 ok, 1 failed, TIME
`
	if got := strings.ReplaceAll(plainTimes(stdout), path, "PATH"); code != 1 || got != want {
		t.Errorf("exit %d:\n%s", code, got)
	}
	if stderr != "hostsim: 1 of 2 cases failed\n" {
		t.Errorf("stderr %q", stderr)
	}
}

func TestRunSelectsAndPasses(t *testing.T) {
	path := write(t, "two.yaml", twoCases)
	if code, stdout, stderr := command("run", path, "--run", "by itself"); code != 0 || stderr != "" || !strings.Contains(stdout, "1 case, 1 ok, 0 failed") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := command("run", path, "--run", "no such"); code != 2 || !strings.Contains(stderr, "matches the name of no case") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestRunSeveralSuites(t *testing.T) {
	one, two := write(t, "one.yaml", twoCases), write(t, "two.yaml", twoCases)
	code, stdout, _ := command("run", one, two, "--wasm", guest(t), "--profile", "envoy-1.36")
	if code != 1 || !strings.Contains(stdout, one+"\nok ") || !strings.Contains(stdout, two+"\nok ") || !strings.Contains(stdout, "4 cases, 2 ok, 2 failed") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

// Mistakes of all suites are told before any runs, each line by itself.
func TestRunTellsEveryMistake(t *testing.T) {
	good, bad, worse := write(t, "good.yaml", twoCases), write(t, "bad.yaml", "cases: [{name: a, requst: {}}]"), write(t, "worse.yaml", "cases: {")
	code, stdout, stderr := command("run", good, bad, worse)
	want := bad + `:1:19: cases[0]: unknown key "requst"; nearest is "request"` + "\n" + worse + ":2:1: not YAML: "
	if code != 2 || stdout != "" || !strings.HasPrefix(stderr, want) {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	none := write(t, "none.yaml", "plugin: {wasm: no-such.wasm}\n"+strings.SplitN(twoCases, "\n", 2)[1])
	if code, _, stderr := command("run", none); code != 2 || !strings.HasPrefix(stderr, none+":1:16: plugin.wasm: ") || !strings.HasSuffix(stderr, "or give --wasm FILE\n") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestRunJSON(t *testing.T) {
	path := write(t, "two.yaml", twoCases)
	code, stdout, _ := command("run", path, "--json", "--coverage")
	var r runJSON
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if code != 1 || r.Passed != 1 || r.Failed != 1 || len(r.Cases) != 2 || !r.Cases[0].OK || r.Cases[1].OK || r.Cases[1].Line != 6 || r.Cases[1].Problems[0].Diff != "- 404\n+ 200" {
		t.Errorf("exit %d: %s", code, stdout)
	}
	calls := map[string]uint64{}
	for _, l := range r.Coverage.Callbacks {
		calls[l.Name] = l.Calls
	}
	for _, l := range r.Coverage.HostCalls {
		calls[l.Name] = l.Calls
	}
	if calls["proxy_on_request_headers"] != 2 || calls["env.proxy_send_local_response"] != 1 {
		t.Errorf("coverage %v", r.Coverage)
	}
}

func TestRunCoverage(t *testing.T) {
	path := write(t, "two.yaml", twoCases)
	_, stdout, _ := command("run", path, "--coverage", "--run", "lets it")
	for _, want := range []string{`coverage: \d+ of \d+ callbacks, \d+ of \d+ host calls\n`, `  proxy_on_request_headers +1\n`, `  env.proxy_send_local_response +never\n`, `  env.proxy_log +1 +OK 1\n`} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

func TestRunVerbosePrintsTheLog(t *testing.T) {
	path := write(t, "log.yaml", "plugin: {wasm: GUEST}\ncases: [{name: crashes, request: {headers: {x-do: panic}}, expect: {crash: true}}]")
	_, quiet, _ := command("run", path)
	_, verbose, _ := command("run", path, "-v")
	if strings.Contains(quiet, "critical:") || !strings.Contains(verbose, "worker 0 critical: ") {
		t.Errorf("quiet:\n%s\nverbose:\n%s", quiet, verbose)
	}
}

// Of a long log, the beginning of the step that failed is shown, where a crash says why, and the end.
func TestRunCutsALongLog(t *testing.T) {
	c := &suite.Result{Name: "a", LastStep: 100}
	for i := range 200 {
		c.Log = append(c.Log, hostsim.LogEntry{Level: hostsim.LogInfo, Message: fmt.Sprint(i)})
	}
	shown := func(verbose bool) string {
		var out strings.Builder
		(&runReport{out: &out, verbose: verbose}).log(c)
		return strings.ReplaceAll(out.String(), "        worker 0 info: ", "")
	}
	if got := shown(false); got != "      log, 12 of 200 lines; --verbose has all\n100\n101\n102\n103\n104\n105\n106\n107\n        ...\n196\n197\n198\n199\n" {
		t.Error(got)
	}
	c.LastStep = 195
	if got := shown(false); !strings.HasSuffix(got, "all\n188\n189\n190\n191\n192\n193\n194\n195\n196\n197\n198\n199\n") {
		t.Error(got)
	}
	if got := shown(true); strings.Count(got, "\n") != 201 {
		t.Error(got)
	}
}

// What --example prints is a suite that the parser takes, and says where the schema comes from.
func TestRunExample(t *testing.T) {
	_, stdout, _ := command("run", "--example")
	s, err := suite.Parse("example.yaml", []byte(stdout))
	if err != nil || len(s.Cases()) < 2 || !strings.Contains(stdout, "hostsim run --schema") {
		t.Errorf("%v in\n%s", err, stdout)
	}
}

// On a terminal the case that runs is seen, and then its line takes that one's place, in colour.
func TestRunOnATerminal(t *testing.T) {
	var out strings.Builder
	r := &runReport{out: &out, terminal: true, color: true, width: 5}
	r.beginCase("a")
	r.done(&suite.Result{Name: "a", OK: true})
	r.beginCase("b")
	r.done(&suite.Result{Name: "b\x1b[2J", Problems: []suite.Problem{{File: "f", Line: 1, Column: 2, Text: "x", Diff: "- 1\n+ 2\n  3"}}})
	want := "...   a\r\x1b[K\x1b[32mok  \x1b[0m  a         0 ms\n" +
		"...   b\r\x1b[K\x1b[31mFAIL\x1b[0m  b?[2J     0 ms\n      f:1:2: x\n" +
		"        \x1b[31m- 1\x1b[0m\n        \x1b[32m+ 2\x1b[0m\n          3\n"
	if got := out.String(); got != want {
		t.Errorf("%q, want\n%q", got, want)
	}
}
