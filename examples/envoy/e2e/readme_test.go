package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The README's commands run as printed, in one shell, but for the ports.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envoytest.Wasm(root); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "examples", "envoy", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Join(envoytest.ShellBlocks(string(page)), "\n")
	if n := strings.Count(script, "\n"); n < 15 {
		t.Fatalf("only %d lines of commands found in README.md", n)
	}
	bin, err := wheel.Find(t.Context(), versions()[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	movePorts := otherPorts(t)
	for _, name := range []string{"envoy.yaml", "stateful-session.yaml", "original-dst.yaml"} {
		config, err := os.ReadFile(filepath.Join(root, "examples", "envoy", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(movePorts(string(config))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script = movePorts(script)
	script = strings.NewReplacer(
		"make wasm ", ": ", // the suite runs on the wasm that is there
		"examples/envoy/envoy.yaml", filepath.Join(dir, "envoy.yaml"),
		"examples/envoy/$carrier", filepath.Join(dir, "$carrier"),
		"dist/admin.yaml", filepath.Join(dir, "admin.yaml"),
		"dist/start.yaml", filepath.Join(dir, "start.yaml"),
		"./dist/lds", filepath.Join(dir, "lds"),
		"dist/lds", filepath.Join(dir, "lds"),
		"dist/replicas &", filepath.Join(dir, "replicas")+movePorts(" 127.0.0.1:8001 127.0.0.1:8002 127.0.0.1:8003 &"),
		"dist/replicas", filepath.Join(dir, "replicas"),
		"--concurrency 2", "--concurrency 2 --disable-hot-restart", // other Envoys run beside
	).Replace(script)

	out := runScript(t, root, script, "ENVOY="+bin, "PATH="+withCurl(t, dir))
	homes, reasons := saidOf(out, "planner: x-pinwheel-replica: "), saidOf(out, "planner: x-pinwheel-reason: ")
	if len(homes) != 3 || homes[0] != homes[1] || homes[0] != homes[2] || !strings.HasPrefix(homes[0], "127.0.0.1:") {
		t.Errorf("planner's three turns went to %q, want one replica", homes)
	}
	if strings.Join(reasons, " ") != "placed pinned pinned" {
		t.Errorf("planner's reasons are %q, want placed pinned pinned", reasons)
	}
	if coder := saidOf(out, "coder: x-pinwheel-replica: "); len(coder) != 3 || len(homes) != 3 || coder[0] == homes[0] {
		t.Errorf("coder went to %q, planner to %q, want three turns each on different replicas", coder, homes)
	}
	if !strings.Contains(out, `{"status":"ok","session_id":"planner"}`) {
		t.Errorf("the release was not acknowledged:\n%s", out)
	}
	operated(t, out)
	died(t, out)
	for _, session := range []string{"one", "two", "three"} {
		if homes := saidOf(out, session+": x-pinwheel-replica: "); len(homes) != 2 || homes[0] != homes[1] {
			t.Errorf("%s went to %q, want the same replica before and after the update", session, homes)
		}
	}
	if homes, third := saidOf(out, "four: x-pinwheel-replica: "), movePorts("127.0.0.1:8003"); len(homes) != 1 || homes[0] == third {
		t.Errorf("the new session went to %q, want one that does not drain as %s", homes, third)
	}
	for _, carrier := range []string{"stateful-session: ", "original-dst: "} {
		homes, reasons := saidOf(out, carrier+"x-pinwheel-replica: "), saidOf(out, carrier+"x-pinwheel-reason: ")
		if len(homes) != 2 || homes[0] != homes[1] || !strings.HasPrefix(homes[0], "127.0.0.1:") || strings.Join(reasons, " ") != "placed pinned" {
			t.Errorf("%splanner went to %q, reasons %q", carrier, homes, reasons)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^pinwheel_sessions\{.*replica="127\.0\.0\.1:\d+".*\} [01]$`).FindAllString(out, -1)); n != 3 {
		t.Errorf("want pinwheel_sessions of three replicas, got %d in\n%s", n, out)
	}
}

// operated checks what the section on drains shows.
func operated(t *testing.T, out string) {
	t.Helper()
	_, out, ok := strings.Cut(out, `"state":"draining"`)
	if !ok {
		t.Fatalf("no drain was acknowledged:\n%s", out)
	}
	drained := ""
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, `{"address":`) && strings.Contains(line, `"state":"draining"`) && strings.Contains(line, `"open_sessions":0,"inflight":0`) {
			drained, _, _ = strings.Cut(strings.TrimPrefix(line, `{"address":"`), `"`)
		}
	}
	if drained == "" || !strings.Contains(out, `{"status":"ok","replica":"`+drained+`","state":"active"`) {
		t.Errorf("%q was drained until it was empty, and is not active again:\n%s", drained, out)
	}
	kept := 0
	for _, session := range []string{"s1", "s2", "s3", "s4", "s5"} {
		for _, home := range saidOf(out, session+": x-pinwheel-replica: ") {
			if home == drained {
				kept++
			}
			if home == drained && session > "s3" {
				t.Errorf("the new session %s went to the drained replica", session)
			}
		}
	}
	if kept != 1 {
		t.Errorf("%d turns went to the drained replica, want its session's one:\n%s", kept, out)
	}
}

// died checks what a page says of sessions whose replica is killed: five turns each.
func died(t *testing.T, out string) {
	t.Helper()
	moved := 0
	for _, session := range []string{"s1", "s2", "s3"} {
		turns := saidOf(out, session+" on ")
		if len(turns) != 5 {
			t.Errorf("%s had turns %q, want five", session, turns)
			continue
		}
		if turns[0] == turns[4] && turns[0] == turns[1] {
			continue // it was not there
		}
		moved++
		spare, _, _ := strings.Cut(turns[1], ",")
		if turns[1] != spare+", attempts: 2" || turns[4] != spare+", attempts: 1" {
			t.Errorf("%s, whose replica died, had turns %q", session, turns)
		}
	}
	if moved != 1 {
		t.Errorf("%d sessions moved, want one", moved)
	}
}

// The line that the page about carriers quotes is in the configuration it names.
func TestReadmeExcerpt(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile("../stateful-session.yaml")
	if err != nil {
		t.Fatal(err)
	}
	blocks := envoytest.Blocks(string(page), "yaml")
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of YAML, want one", len(blocks))
	}
	if line := strings.TrimSpace(blocks[0]); !strings.Contains(string(config), line) {
		t.Errorf("stateful-session.yaml has no %q", line)
	}
}

// saidOf returns what follows the prefix in each line that has it.
func saidOf(out, prefix string) []string {
	var rest []string
	for line := range strings.Lines(out) {
		if r, ok := strings.CutPrefix(line, prefix); ok {
			rest = append(rest, strings.TrimSpace(r))
		}
	}
	return rest
}

// otherPorts returns a function that moves all of the example's ports to free
// ones.
func otherPorts(t *testing.T) func(string) string {
	t.Helper()
	var pairs []string
	for _, p := range []string{"10000", "9901", "8001", "8002", "8003"} {
		free, err := envoytest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{"port_value: %s}", "127.0.0.1:%s"} {
			pairs = append(pairs, fmt.Sprintf(form, p), fmt.Sprintf(form, fmt.Sprint(free)))
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// runScript runs the commands in dir and returns what they print.
func runScript(t *testing.T, dir, script string, env ...string) string {
	t.Helper()
	out, err := envoytest.RunScript(t.Context(), dir, script, env...)
	if err != nil {
		t.Fatalf("the commands failed: %v\n%s", err, out)
	}
	return out
}

// withCurl returns a PATH on which there is a curl.
func withCurl(t *testing.T, dir string) string {
	t.Helper()
	path, err := envoytest.PathWithCurl(dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
