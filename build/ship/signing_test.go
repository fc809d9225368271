//go:build signing

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// installed builds a program of another module, by Go's module proxy, and returns the folder that it is in.
func installed(t *testing.T, pkg string) string {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.Command("go", "install", "-trimpath", pkg)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOBIN="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", pkg, err, out)
	}
	return folder
}

// A release for all platforms, and what docs/install.md says of cosign and oras, by both of them: good signatures verify, others do not.
func TestSigning(t *testing.T) {
	folder := makeRelease(t, checkout(t))
	for _, name := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"} {
		for _, suffix := range []string{"", sbomSuffix} {
			if _, err := os.Stat(filepath.Join(folder, hostsimPrefix+name+suffix)); err != nil {
				t.Error(err)
			}
		}
	}
	registry := strings.Replace(startRegistry(t), "127.0.0.1", "localhost", 1) // oras leaves out TLS for that name alone
	pushed := ship(t, "push", filepath.Join(folder, layoutFile), registry+"/pinwheel")
	digests := regexp.MustCompile(`sha256:([0-9a-f]{64})`).FindAllStringSubmatch(pushed, 2)
	env := []string{"REGISTRY=" + registry, "VERSION=" + tried, "DIGEST=" + digests[0][1], "COSIGN_PASSWORD=pass", "HOME=" + t.TempDir(),
		"PATH=" + installed(t, "github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3") + ":" + installed(t, "oras.land/oras/cmd/oras@v1.3.6") + ":" + os.Getenv("PATH")}
	do := func(folder string, env []string, script string) (string, error) {
		return in(t, folder, env, "sh", "-euc", script)
	}
	must := func(folder, script string) {
		t.Helper()
		out, err := do(folder, env, script)
		if err != nil {
			t.Fatalf("%v:\n%s\n%s", err, script, out)
		}
		t.Logf("%s%s", script, out)
	}
	page := blocks(t, "cosign")
	if len(page) != 2 {
		t.Fatalf("%d blocks for cosign", len(page))
	}
	for _, block := range page {
		must(folder, block)
	}

	image, blob, _ := strings.Cut(strings.TrimSpace(page[1]), "\n")
	stranger := t.TempDir()
	must(stranger, "cosign generate-key-pair")
	for _, c := range []struct{ what, script string }{
		{"an image, by another key", "cp " + stranger + "/cosign.pub .\n" + image},
		{"a file, by another key", "cp " + stranger + "/cosign.pub .\n" + blob},
		{"an image that nobody signed", "DIGEST=" + digests[1][1] + "\n" + image},
		{"a changed file", "echo >>SHA256SUMS\n" + blob},
	} {
		trial := filepath.Join(t.TempDir(), "release")
		if err := os.CopyFS(trial, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		out, err := do(trial, env, c.script)
		if err == nil {
			t.Errorf("%s verifies:\n%s", c.what, out)
		}
		t.Logf("%s: %s", c.what, out)
	}

	for _, block := range blocks(t, "oras") {
		to := t.TempDir()
		must(to, block)
		got, err := os.ReadFile(filepath.Join(to, "plugin.wasm"))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(filepath.Join(folder, wasmFile)); err != nil || sum(got) != sum(want) {
			t.Errorf("%v: oras pulls %d bytes that are not the module", err, len(got))
		}
	}
}
