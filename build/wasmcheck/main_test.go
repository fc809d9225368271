package main

import (
	"bytes"
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
	build := exec.Command("go", "build", "-trimpath=false", "-buildmode=c-shared", "-o", wasm, "./testdata/unbound")
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
	if here, err := filepath.Abs("testdata"); err != nil || !strings.Contains(leak(b, []string{here}), here) {
		t.Errorf("%v, a build without -trimpath, tells nothing about %s", err, here)
	}
}

// findingsOf is what the check says of a variant of the shipped module, by what it looked at.
func findingsOf(t *testing.T, wasm []byte) map[string]string {
	t.Helper()
	findings, err := check(wasm)
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]string{}
	for _, f := range findings {
		wrong[strings.TrimSuffix(f.what+" "+f.is, " of the building machine")] = f.wrong
		wrong[f.what] += f.wrong
	}
	return wrong
}

// custom is a section of the WebAssembly binary format that gateways skip: id 0, size and name as LEB128 and text.
func custom(content string) []byte {
	body := append([]byte{1, 'x'}, content...)
	section := []byte{0}
	for n := len(body); ; n >>= 7 {
		if n < 0x80 {
			section = append(section, byte(n))
			break
		}
		section = append(section, byte(n)|0x80)
	}
	return append(section, body...)
}

// Each property, made wrong in the shipped module: a name is replaced by one as long, or a section is added.
func TestEachPropertyCanFail(t *testing.T) {
	shippedModule, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatalf("%v; build it with: make wasm", err)
	}
	renamed := func(from, to string) []byte {
		name := append([]byte{byte(len(from))}, from...)
		if len(from) != len(to) || !bytes.Contains(shippedModule, name) {
			t.Fatalf("%s cannot become %s", from, to)
		}
		return bytes.Replace(shippedModule, name, append([]byte{byte(len(to))}, to...), 1)
	}
	grown := func(content string) []byte { return append(slices.Clone(shippedModule), custom(content)...) }
	for _, c := range []struct {
		name, property, want string
		wasm                 []byte
	}{
		{"another ABI", "ABI", "want 0.2.1", renamed("proxy_abi_version_0_2_1", "proxy_abi_version_0_2_0")},
		{"no ABI", "ABI", "want 0.2.1", renamed("proxy_abi_version_0_2_1", "proxy_abi_versiom_0_2_1")},
		{"a callback too many", "exports", "proxy_on_response_trailer too many", renamed("proxy_on_response_headers", "proxy_on_response_trailer")},
		{"a callback missing", "exports", "proxy_on_response_headers missing", renamed("proxy_on_response_headers", "proxy_on_response_trailer")},
		{"a host call that we do not use", "host calls", "proxy_dispatch_x too many", renamed("proxy_get_metric", "proxy_dispatch_x")},
		{"a WASI function that 1.36 lacks", "loads in envoy-1.36", "lacks wasi_snapshot_preview1.fd_renumber", renamed("environ_get", "fd_renumber")},
		{"one that 1.40 lacks", "loads in envoy-1.40", "lacks wasi_snapshot_preview1.sock_accept", renamed("sched_yield", "sock_accept")},
		{"over the budget", "size", "the budget is", grown(strings.Repeat("x", sizeBudget-len(shippedModule)))},
		{"a home folder", "paths", "/home/someone", grown("at /home/someone/src/plugin.go:12")},
		{"a build service", "paths", "/builds/pinwheel", grown("/builds/pinwheel/x.go")},
		{"Windows", "paths", "someone", grown(`C:\Users\someone\x.go`)},
		{"the module cache", "paths", "/go/pkg/mod/github.com", grown("/x/go/pkg/mod/github.com/a")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := findingsOf(t, c.wasm)[c.property]; !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q in it", c.property, got, c.want)
			}
		})
	}
	t.Run("harmless", func(t *testing.T) {
		for what, wrong := range findingsOf(t, grown("/etc/hosts /proc/self")) {
			if wrong != "" {
				t.Errorf("%s: %s", what, wrong)
			}
		}
	})
}
