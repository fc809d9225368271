package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const (
	tried    = "0.0.1-try.1"
	platform = runtime.GOOS + "-" + runtime.GOARCH
)

// in runs a command in a folder and returns what it prints, which is all that it may depend on.
func in(t *testing.T, folder string, env []string, command ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// checkout is this one's files as they are now, with a section of the change log for a version, committed.
func checkout(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "tree")
	listed, err := git("../..", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(listed, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join("../..", name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		} else if err != nil {
			t.Fatal(err)
		}
		if name == "CHANGELOG.md" {
			content = bytes.Replace(content, []byte("## Unreleased"), []byte("## "+tried+" - 2026-01-31"), 1)
		}
		to := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	someone := []string{"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@localhost",
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "test"}} {
		if out, err := in(t, folder, someone, append([]string{"git"}, args...)...); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	return folder
}

// clone is a checkout of the same commit in another folder.
func clone(t *testing.T, tree string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "another tree")
	if out, err := in(t, ".", nil, "git", "clone", "-q", tree, folder); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

// makeRelease makes a release for the given platforms of hostsim, or for those that the Makefile names.
func makeRelease(t *testing.T, tree string, platforms ...string) string {
	t.Helper()
	command := []string{"make", "release", "VERSION=" + tried}
	if len(platforms) > 0 {
		command = append(command, "PLATFORMS="+strings.Join(platforms, " "))
	}
	if out, err := in(t, tree, nil, command...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(tree, "dist", "pinwheel-"+tried)
}

func TestRelease(t *testing.T) {
	tree := checkout(t)
	folder := makeRelease(t, tree, platform)
	sums, err := os.ReadFile(filepath.Join(folder, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("install page, in another folder", func(t *testing.T) {
		other, err := os.ReadFile(filepath.Join(followInstallPage(t, clone(t, tree)), sumsFile))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(sums, other) {
			t.Errorf("here\n%s\nthere\n%s", sums, other)
		}
	})
	t.Run("check sums", func(t *testing.T) { checkSums(t, folder, string(sums)) })
	t.Run("versions", func(t *testing.T) { reportsVersion(t, folder) })
	t.Run("bills of materials", func(t *testing.T) {
		for file, want := range map[string][]string{wasmFile: {"github.com/tetratelabs/proxy-wasm-go-sdk", "std"}, hostsimPrefix + platform: {"github.com/tetratelabs/wazero", "github.com/tidwall/gjson", "std"}} {
			holdsModules(t, folder, file, want)
		}
	})
	t.Run("provenance", func(t *testing.T) { provenanceHolds(t, tree, folder) })
	t.Run("only the version differs", func(t *testing.T) {
		released, err := os.ReadFile(filepath.Join(folder, wasmFile))
		if err != nil {
			t.Fatal(err)
		}
		if wasm := shippedModule(t); bytes.Equal(wasm, released) || !bytes.Contains(released, []byte(tried)) || bytes.Contains(wasm, []byte(tried)) {
			t.Error("the version is not what tells a release from another build")
		}
	})
}

func goPath(t *testing.T, name string) string {
	t.Helper()
	out, err := goTool(nil, "env", name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// checkSums: every file of the release is summed, and one changed byte is noticed, by the tool that people have.
func checkSums(t *testing.T, folder, sums string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(sums, "\n"); got != len(entries)-1 || got < 8 {
		t.Errorf("%d files, %d sums:\n%s", len(entries), got, sums)
	}
	if out, err := in(t, folder, nil, "sha256sum", "-c", sumsFile); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	damaged := t.TempDir()
	if err := os.CopyFS(damaged, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, imagesFile), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := in(t, damaged, nil, "sha256sum", "-c", sumsFile); err == nil {
		t.Errorf("a changed file passes:\n%s", out)
	}
}

// reportsVersion asks both binaries: hostsim by its flag, the plugin by its status, in that hostsim.
func reportsVersion(t *testing.T, folder string) {
	hostsim := filepath.Join(folder, hostsimPrefix+platform)
	if out, err := in(t, folder, nil, hostsim, "--version"); err != nil || out != "hostsim version "+tried+"\n" {
		t.Errorf("%v %q", err, out)
	}
	cmd := exec.Command(hostsim, "serve", "--wasm", filepath.Join(folder, wasmFile), "--upstream", "vllm=127.0.0.1:9", "--listen", "127.0.0.1:0",
		"--config-text", `{"replicas":["127.0.0.1:9"],"admin":{}}`)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	address, said := "", ""
	for lines := bufio.NewScanner(stdout); address == "" && lines.Scan(); said += lines.Text() + "\n" {
		address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	response, err := http.Get(address + "/pinwheel/status")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	defer response.Body.Close()
	var status struct{ Versions struct{ Pinwheel string } }
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil || status.Versions.Pinwheel != tried {
		t.Errorf("%v, version %q, want %q", err, status.Versions.Pinwheel, tried)
	}
}

func holdsModules(t *testing.T, folder, file string, want []string) {
	f, err := os.Open(filepath.Join(folder, file+sbomSuffix))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bom := new(cdx.BOM)
	if err := cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err)
	}
	if c := bom.Metadata.Component; c.Version != tried || (*c.Hashes)[0].Value != sum(content) {
		t.Errorf("%s: %+v", file, c)
	}
	var names []string
	for _, c := range *bom.Components {
		names = append(names, c.Name)
	}
	for _, name := range want {
		if !slices.Contains(names, name) {
			t.Errorf("%s lacks %s: %s", file, name, names)
		}
	}
	if file == wasmFile && len(names) > 8 {
		t.Errorf("%s is said to hold what only hostsim does: %s", file, names)
	}
	// What the linker put into the binary itself, where it says so.
	if out, err := goTool(nil, "version", "-m", filepath.Join(folder, file)); err == nil && file != wasmFile {
		if linked := strings.Count(string(out), "\tdep\t"); linked != len(names)-1 {
			t.Errorf("%s: %d modules, linked are %d:\n%s\n%s", file, len(names)-1, linked, names, out)
		}
	}
}

func provenanceHolds(t *testing.T, tree, folder string) {
	text, err := os.ReadFile(filepath.Join(folder, provenanceFile))
	if err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	images, err := os.ReadFile(filepath.Join(folder, imagesFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, about := range s.Subject {
		content, err := os.ReadFile(filepath.Join(folder, about.Name))
		if err == nil && about.Digest["sha256"] != sum(content) || err != nil && !strings.Contains(string(images), about.Digest["sha256"]) {
			t.Errorf("%v is neither a file nor an image of the release", about)
		}
	}
	commit, err := git(tree, "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	build := s.Predicate.BuildDefinition
	if got := build.ResolvedDependencies[0].Digest["gitCommit"]; got != commit {
		t.Errorf("commit %s, want %s", got, commit)
	}
	if want := fmt.Sprintf("GOTOOLCHAIN=%s make release VERSION=%s PLATFORMS='%s'", goPath(t, "GOVERSION"), tried, platform); build.ExternalParameters["command"] != want {
		t.Errorf("%q, want %q", build.ExternalParameters["command"], want)
	}
	if len(s.Subject) != 4 || len(build.ResolvedDependencies) < 8 {
		t.Errorf("%d subjects, %d dependencies", len(s.Subject), len(build.ResolvedDependencies))
	}
}

// What keeps a version from being released, in one line each, from the same command.
func TestReleaseRefuses(t *testing.T) {
	tree := checkout(t)
	for version, want := range map[string]string{
		"":          `VERSION is ""`,
		"v0.0.1":    `VERSION is "v0.0.1", allowed is`,
		"0.1":       `VERSION is "0.1"`,
		"0.0.01":    `VERSION is "0.0.01"`,
		"0.0.1+b":   `VERSION is "0.0.1+b"`,
		"0.0.1-":    `VERSION is "0.0.1-"`,
		"0.0.1":     `no section "## 0.0.1 - YYYY-MM-DD"`,
		"9.0.1-a.b": `no section "## 9.0.1-a.b - YYYY-MM-DD"`,
	} {
		if err := ready(tree, version); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", version, err, want)
		}
	}
	if err := ready(tree, tried); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "left.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := ready(tree, tried); err == nil || !strings.Contains(err.Error(), `the tree is not clean, 1 files, "?? left.txt" the first`) {
		t.Error(err)
	}
	if out, err := in(t, tree, nil, "make", "release", "VERSION="+tried); err == nil || !strings.Contains(out, "ship: the tree is not clean") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(tree, ".git")); err != nil {
		t.Fatal(err)
	}
	if err := ready(tree, tried); err == nil || !strings.Contains(err.Error(), "releases are made from a git checkout") {
		t.Error(err)
	}
}
