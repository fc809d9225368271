package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const shipped = "../../dist/pinwheel.wasm"

// proxy-wasm/proxy-wasm-cpp-host#533: official Go asked for imports that the gateway
// lacked. The module's lists are held here, for each gateway that must load it.
func TestShippedModule(t *testing.T) {
	wasm, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatalf("%v; build it with: make wasm", err)
	}
	findings, err := check(wasm)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.wrong != "" {
			t.Errorf("%s: %s", f.what, f.wrong)
		}
	}
}

// The mistake that this program exists for: the SDK alone, built by official Go.
func TestModuleWithoutTheBridgeIsRefused(t *testing.T) {
	dir := t.TempDir()
	wasm := filepath.Join(dir, "m.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", wasm, "./testdata/unbound")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(wasm)
	if err != nil {
		t.Fatal(err)
	}
	findings, err := check(b)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(findings, func(f finding) bool { return f.what == "exports" })
	if !strings.Contains(findings[i].wrong, "proxy_on_request_headers missing") {
		t.Errorf("exports: %q", findings[i].wrong)
	}
}

// The same sources give the same bytes, wherever they are built.
func TestBuildIsReproducible(t *testing.T) {
	var first []byte
	for range 2 {
		root := filepath.Join(t.TempDir(), "elsewhere")
		copySources(t, root)
		wasm := filepath.Join(root, "m.wasm")
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared",
			"-ldflags=-s -w -buildid=", "-o", wasm, "./plugin/wasm")
		build.Dir = root
		build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		b, err := os.ReadFile(wasm)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !slices.Equal(first, b) {
			t.Error("two folders, two binaries")
		}
		first = b
	}
	shippedBytes, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatalf("%v; build it with: make wasm", err)
	}
	if !slices.Equal(first, shippedBytes) {
		t.Error("dist/pinwheel.wasm is not what these sources build; run: make wasm")
	}
}

func copySources(t *testing.T, root string) {
	t.Helper()
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum", "plugin", "policy"} {
		from := filepath.Join("../..", name)
		to := filepath.Join(root, name)
		info, err := os.Stat(from)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			err = os.CopyFS(to, os.DirFS(from))
		} else {
			var b []byte
			if b, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, b, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
