package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
)

// blocks are the commands of docs/install.md for one tool, in order.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		list = append(list, m[1])
	}
	return list
}

// startRegistry returns REGISTRY for the page, a folder in a registry of this process.
func startRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/team"
}

// buildTool builds a main package of a module that go.mod here knows and returns the folder that it is in, for PATH.
func buildTool(t *testing.T, pkg string) string {
	t.Helper()
	folder := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", folder+string(filepath.Separator), pkg).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", pkg, err, out)
	}
	return folder
}

// followInstallPage does what docs/install.md says, each block in the root of the checkout, under another home and time zone
// than this process's. It returns the release's folder.
func followInstallPage(t *testing.T, tree string) string {
	t.Helper()
	env := []string{"REGISTRY=" + startRegistry(t), "VERSION=" + tried, "PLATFORMS=" + platform, "TZ=Pacific/Kiritimati", "HOME=" + t.TempDir(),
		"GOMODCACHE=" + goPath(t, "GOMODCACHE"), "GOCACHE=" + goPath(t, "GOCACHE"),
		"PATH=" + buildTool(t, "github.com/google/go-containerregistry/cmd/crane") + ":" + os.Getenv("PATH")}
	script := blocks(t, "sh")
	if len(script) < 7 {
		t.Fatalf("only %d blocks", len(script))
	}
	digest := "" // what one block sets, the next ones have
	for _, block := range script {
		out, err := in(t, tree, append(env, digest), "sh", "-euc", block+"\necho; echo DIGEST=${DIGEST-}")
		if err != nil {
			t.Fatalf("%v:\n%s\n%s", err, block, out)
		}
		digest = out[strings.LastIndex(out, "DIGEST="):]
		t.Logf("%s%s", block, out)
	}
	folder := filepath.Join(tree, "dist", "pinwheel-"+tried)
	if extracted, err := os.ReadFile(filepath.Join(tree, image.FileName)); err != nil {
		t.Error(err)
	} else if released, err := os.ReadFile(filepath.Join(folder, wasmFile)); err != nil || sum(extracted) != sum(released) {
		t.Errorf("%v: what crane took out of the registry is not the release's module", err)
	}
	return folder
}

// The page's table of a release's files is a list of the files.
func TestInstallPageListsAllFiles(t *testing.T) {
	page, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{wasmFile, layoutFile, imagesFile, licencesFile, provenanceFile, sumsFile, hostsimPrefix + "SYSTEM-PROCESSOR", "*" + sbomSuffix} {
		if !strings.Contains(string(page), "\n| `"+name+"`") {
			t.Errorf("the page has no line for %s", name)
		}
	}
}
