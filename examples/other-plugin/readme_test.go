// Package otherplugin holds the example's README to what really happens.
package otherplugin

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// TestMain plays curl where the machine has none.
func TestMain(m *testing.M) {
	envoytest.ActAsCurl()
	os.Exit(m.Run())
}

const root = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// freePort is one that nobody listens on, for the moment.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := strings.Cut(l.Addr().String(), ":")
	return port
}

// program makes a command of a name for the README's commands.
func program(t *testing.T, bin, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// authorsFolder is a copy of a plugin's folder outside the checkout, a module of its own, as its author has it.
func authorsFolder(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "assembly/index.ts", "gate_test.go", "gate.yaml"} {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(read(t, filepath.Join(from, name))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/pinwheel-proxy/pinwheel"
	mod := strings.Replace(read(t, filepath.Join(root, "go.mod")), "module "+module, "module example.com/gate", 1) +
		"\nrequire " + module + " v0.0.0\nreplace " + module + " => " + checkout + "\n"
	for name, text := range map[string]string{"go.mod": mod, "go.sum": read(t, filepath.Join(root, "go.sum"))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shell runs a page's commands, one after another in one shell in an author's folder, and returns what they print.
func shell(t *testing.T, page, dir string) string {
	t.Helper()
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	path, err := envoytest.PathWithCurl(bin)
	if err != nil {
		t.Fatal(err)
	}
	npm := filepath.Join(bin, "npm-or-node")
	if out, err := exec.Command("go", "build", "-o", npm, "../../build/npm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program(t, bin, "npm", "PATH='"+path+"' exec '"+npm+"' . \"$@\"")
	program(t, bin, "hostsim", "exec '"+checkout+"/dist/hostsim' \"$@\"")
	port := freePort(t)
	script := strings.NewReplacer(":8080", ":"+port, "serve --wasm", "serve --listen 127.0.0.1:"+port+" --wasm", "record --wasm", "record --listen 127.0.0.1:"+port+" --wasm", "9000", freePort(t)).
		Replace(strings.Join(envoytest.ShellBlocks(page), ""))
	out, err := envoytest.RunScript(t.Context(), dir, script, "PATH="+bin+string(os.PathListSeparator)+path, "GOFLAGS=-mod=mod")
	if err != nil {
		t.Errorf("%v (`make build` builds hostsim)", err)
	}
	return out
}

// shows fails unless the text blocks of a page were printed, line by line in order. A line may go on with a time.
func shows(t *testing.T, page, out string) {
	t.Helper()
	rest := out
	lines := strings.Split(strings.TrimSpace(strings.Join(envoytest.Blocks(page, "text"), "")), "\n")
	if len(lines) < 3 {
		t.Errorf("the page shows %q", lines)
	}
	for _, line := range lines {
		_, after, ok := strings.Cut(rest, line)
		if !ok {
			t.Fatalf("%q is not printed, or not there:\n%s", line, out)
		}
		rest = after
	}
}

func TestReadme(t *testing.T) {
	page := read(t, "README.md")
	out := shell(t, page, authorsFolder(t, "assemblyscript"))
	shows(t, page, out)
	if !strings.Contains(out, "ok  \texample.com/gate") {
		t.Errorf("the author's test did not run:\n%s", out)
	}
}

// hostsim's own page is about a plugin that is built already.
func TestHostsimsReadme(t *testing.T) {
	page := read(t, filepath.Join(root, "hostsim/README.md"))
	dir := authorsFolder(t, "assemblyscript")
	if err := os.WriteFile(filepath.Join(dir, "gate.wasm"), []byte(read(t, "assemblyscript/gate.wasm")), 0o644); err != nil {
		t.Fatalf("%v (`make others` builds it)", err)
	}
	shows(t, page, shell(t, page, dir))
	if suite := strings.Join(envoytest.Blocks(page, "yaml"), ""); suite != read(t, "assemblyscript/gate.yaml") {
		t.Errorf("the page's suite is not gate.yaml:\n%s", suite)
	}
}

// The page about recordings goes on with that plugin.
func TestRecordingsPage(t *testing.T) {
	page := read(t, filepath.Join(root, "docs/recordings.md"))
	dir := authorsFolder(t, "assemblyscript")
	if err := os.WriteFile(filepath.Join(dir, "gate.wasm"), []byte(read(t, "assemblyscript/gate.wasm")), 0o644); err != nil {
		t.Fatalf("%v (`make others` builds it)", err)
	}
	shows(t, page, shell(t, page, dir))
}

// The pages' Go is in tests, word for word.
func TestReadmesShowTests(t *testing.T) {
	tests := read(t, "assemblyscript/gate_test.go") + read(t, "rust/quota_test.go")
	for _, name := range []string{"README.md", "../../hostsim/README.md", "../../docs/hostsim-races.md"} {
		blocks := envoytest.Blocks(read(t, name), "go")
		if len(blocks) == 0 {
			t.Errorf("%s shows no Go", name)
		}
		for _, b := range blocks {
			if !strings.Contains(tests, b) {
				t.Errorf("%s shows Go that is in no test:\n%s", name, b)
			}
		}
	}
}
