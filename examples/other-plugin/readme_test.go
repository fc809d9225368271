// Package otherplugin holds the example's README to what really happens.
package otherplugin

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// fenced returns a page's fenced blocks of one language, as one text.
func fenced(page, language string) (text string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page, -1) {
		text += m[1]
	}
	return text
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
	for _, name := range []string{"package.json", "package-lock.json", "assembly/index.ts", "gate_test.go"} {
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

// The README's commands, one after another in one shell in an author's folder, print what the README shows.
func TestReadme(t *testing.T) {
	page := read(t, "README.md")
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
	script := strings.NewReplacer(":8080", ":"+port, "serve --wasm", "serve --listen 127.0.0.1:"+port+" --wasm", "9000", freePort(t)).
		Replace(strings.Join(envoytest.ShellBlocks(page), ""))
	out, err := envoytest.RunScript(t.Context(), authorsFolder(t, "assemblyscript"), script,
		"PATH="+bin+string(os.PathListSeparator)+path, "GOFLAGS=-mod=mod")
	if err != nil {
		t.Errorf("%v (`make build` builds hostsim)", err)
	}
	rest := out
	for _, line := range strings.Split(strings.TrimSpace(fenced(page, "text")), "\n") {
		_, after, ok := strings.Cut(rest, line)
		if !ok {
			t.Fatalf("%q is not printed, or not there:\n%s", line, out)
		}
		rest = after
	}
	if !strings.Contains(out, "ok  \texample.com/gate") {
		t.Errorf("the author's test did not run:\n%s", out)
	}
}

// The README's Go is the author's test, word for word.
func TestReadmeShowsTheTest(t *testing.T) {
	if code := fenced(read(t, "README.md"), "go"); code == "" || !strings.Contains(read(t, "assemblyscript/gate_test.go"), code) {
		t.Error("the README's test is not in gate_test.go")
	}
}
