// Package quickstart holds the quickstart's README to what really happens.
package quickstart

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// TestMain plays curl when the README's commands call it, for a machine need not have it.
func TestMain(m *testing.M) {
	if os.Getenv("QUICKSTART_CURL") != "" {
		if err := curl(os.Args[1:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// curl knows the options that the README uses, and refuses others.
func curl(args []string, stdout io.Writer) error {
	method, url, body := "", "", ""
	headers := http.Header{}
	value := func(i int) string {
		if i+1 < len(args) {
			return args[i+1]
		}
		return ""
	}
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-s":
		case a == "-X":
			method = value(i)
			i++
		case a == "-d":
			body = value(i)
			i++
		case a == "-H":
			name, v, _ := strings.Cut(value(i), ":")
			headers.Add(name, strings.TrimSpace(v))
			i++
		case strings.HasPrefix(a, "-") || url != "":
			return fmt.Errorf("curl %q: not an option that this test knows", a)
		default:
			url = "http://" + a
		}
	}
	if method == "" && body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = headers
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(stdout, resp.Body)
	return err
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

// fenced returns the README's fenced blocks of one language, in order.
func fenced(readme, language string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readme, -1) {
		out = append(out, m[1])
	}
	return out
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
	recipe := regexp.MustCompile(`(?m)^\t@?dist/hostsim (serve .*--listen) 127\.0\.0\.1:8080$`).FindStringSubmatch(read(t, "Makefile"))
	if recipe == nil {
		t.Fatal("the Makefile has no recipe that runs `dist/hostsim serve ... --listen 127.0.0.1:8080`")
	}
	cmd := exec.Command("dist/hostsim", append(strings.Fields(recipe[1]), "127.0.0.1:0")...)
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

// The README's commands, one after another in one shell, print what the README shows, addresses aside.
func TestReadme(t *testing.T) {
	readme := read(t, "examples/quickstart/README.md")
	commands, shown := fenced(readme, "sh"), fenced(readme, "text")
	if len(commands) == 0 || len(commands) != len(shown) {
		t.Fatalf("%d blocks of commands and %d of what they print", len(commands), len(shown))
	}
	for _, c := range fenced(readme, "console") {
		target, ok := strings.CutPrefix(strings.TrimSpace(c), "$ make ")
		if !ok || !strings.Contains(read(t, "Makefile"), "\n"+target+": ") {
			t.Errorf("the Makefile cannot do %q", c)
		}
	}
	address := serve(t)
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shim := fmt.Sprintf("#!/bin/sh\nQUICKSTART_CURL=1 exec '%s' \"$@\"\n", self)
	if err := os.WriteFile(filepath.Join(bin, "curl"), []byte(shim), 0o700); err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(strings.Join(commands, ""), "127.0.0.1:8080", address)
	cmd := exec.Command("bash", "-eu", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	got, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, got)
	}
	if got, want := numbered(string(got)), numbered(strings.Join(shown, "")); got != want {
		t.Errorf("printed:\n%s\nshown:\n%s", got, want)
	}
}
