// Package quickstart holds the quickstart's README to what really happens.
package quickstart

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

const root = "../.."

// TestMain plays curl when the README's commands call it, for a machine need not have it.
func TestMain(m *testing.M) {
	envoytest.ActAsCurl()
	os.Exit(m.Run())
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var port = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// numbered replaces addresses by R1, R2 and so on in the order in which they appear: which ones are equal stays.
func numbered(text string) string {
	names := map[string]string{}
	return port.ReplaceAllStringFunc(text, func(a string) string {
		if names[a] == "" {
			names[a] = fmt.Sprintf("R%d", len(names)+1)
		}
		return names[a]
	})
}

// serve starts what `make serve` starts, on a free port, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	recipe := regexp.MustCompile(`(?m)^\t@?dist/hostsim (serve .*--listen) \$\(LISTEN\)$`).FindStringSubmatch(read(t, "Makefile"))
	if recipe == nil {
		t.Fatal("the Makefile has no recipe that runs `dist/hostsim serve ... --listen $(LISTEN)`")
	}
	flags := strings.ReplaceAll(recipe[1], "$(PAGE)", "127.0.0.1:0")
	cmd := exec.Command("dist/hostsim", append(strings.Fields(flags), "127.0.0.1:0")...)
	cmd.Dir = root
	cmd.Path = filepath.Join(root, "dist/hostsim")
	if abs, err := filepath.Abs(cmd.Path); err == nil {
		cmd.Path = abs
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (`make build` builds it)", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("hostsim serve, told to stop: %v\n%s", err, stderr.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		t.Fatalf("hostsim serve said nothing: %v (`make build wasm` builds what it needs)", err)
	}
	return port.FindString(line)
}

// The front page's commands: targets that are there, and a request that an answer as described comes to.
func TestFrontPageCommands(t *testing.T) {
	address := serve(t)
	path, err := envoytest.PathWithCurl(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	prose, requests := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(read(t, "README.md"), ""), 0
	for _, m := range regexp.MustCompile(`(?m)^ {4}(\S.*)$`).FindAllStringSubmatch(prose, -1) {
		command := m[1]
		switch name, rest, _ := strings.Cut(command, " "); {
		case name == "make":
			target, _, _ := strings.Cut(rest, " ")
			if !strings.Contains(read(t, "Makefile"), "\n"+target+": ") {
				t.Errorf("the Makefile cannot do %q", command)
			}
		case name == "curl":
			requests++
			for _, cached := range []string{"had 0 of ", "had 1"} {
				got, err := envoytest.RunScript(t.Context(), ".", strings.ReplaceAll(command, "127.0.0.1:8080", address), "PATH="+path)
				if err != nil || !strings.Contains(got, "Replica 127.0.0.1:") || !strings.Contains(got, cached) || !strings.Contains(got, "prompt tokens cached") {
					t.Errorf("%s: %v\n%s\nwant a replica that %q of the prompt cached", command, err, got, cached)
				}
			}
		default:
			t.Errorf("nobody runs %q", command)
		}
	}
	if requests == 0 {
		t.Error("README.md sends no request")
	}
}

// The README's commands, one after another in one shell, print what the README shows, addresses aside.
func TestReadme(t *testing.T) {
	readme := read(t, "examples/quickstart/README.md")
	commands, shown := envoytest.Blocks(readme, "sh"), envoytest.Blocks(readme, "text")
	if len(commands) == 0 || len(commands) != len(shown) {
		t.Fatalf("%d blocks of commands and %d of what they print", len(commands), len(shown))
	}
	for _, c := range envoytest.Blocks(readme, "console") {
		target, ok := strings.CutPrefix(strings.TrimSpace(c), "$ make ")
		if !ok || !strings.Contains(read(t, "Makefile"), "\n"+target+": ") {
			t.Errorf("the Makefile cannot do %q", c)
		}
	}
	address := serve(t)
	path, err := envoytest.PathWithCurl(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(strings.Join(commands, ""), "127.0.0.1:8080", address)
	got, err := envoytest.RunScript(t.Context(), ".", script, "PATH="+path)
	if err != nil {
		t.Errorf("%v\n%s", err, got)
	}
	if got, want := numbered(got), numbered(strings.Join(shown, "")); got != want {
		t.Errorf("printed:\n%s\nshown:\n%s", got, want)
	}
}
