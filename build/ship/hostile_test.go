package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// trial is a registry on loopback, whose requests pass see first; false means that it has answered.
func trial(t *testing.T, see func(http.ResponseWriter, *http.Request) bool) (repository, url string) {
	t.Helper()
	open := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if see(w, r) {
			open.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/pinwheel", server.URL
}

// A registry that does not say whether a version is there is no reason to write it again, and nothing is pushed of a
// layout one of whose versions is there.
func TestPushOverwritesNothing(t *testing.T) {
	failures, writes := 0, 0
	repository, url := trial(t, func(w http.ResponseWriter, r *http.Request) bool {
		read := r.Method == http.MethodHead || r.Method == http.MethodGet
		if failures > 0 && read && strings.Contains(r.URL.Path, "/manifests/") {
			failures--
			w.WriteHeader(http.StatusTeapot) // which nobody tries again
			return false
		}
		if !read {
			writes++
		}
		return true
	})
	first, second := filepath.Join(t.TempDir(), "oci"), filepath.Join(t.TempDir(), "oci")
	ship(t, "layout", "--version", "1.2.3", "testdata/other.wasm", first)
	ship(t, "layout", "--version", "1.2.3", shipped, second)
	ship(t, "push", first, repository)
	writes, failures = 0, 1
	refused(t, "is "+repository+":v1.2.3 there?", "push", second, repository)
	request, err := http.NewRequest(http.MethodDelete, url+"/v2/pinwheel/manifests/v1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatalf("%v %v", resp, err)
	}
	resp.Body.Close()
	refused(t, repository+":v1.2.3-wasm is there with another digest", "push", second, repository)
	if writes != 1 {
		t.Errorf("%d writes beside the deletion", writes-1)
	}
}

// A damaged layout is refused, and no digest is told that its bytes do not have.
func TestDamagedLayout(t *testing.T) {
	for name, damage := range map[string]func(path string, content []byte) error{
		"longer": func(path string, content []byte) error { return os.WriteFile(path, append(content, '\n'), 0o644) },
		"changed": func(path string, content []byte) error {
			content[len(content)-9] ^= 1
			return os.WriteFile(path, content, 0o644)
		},
		"empty":   func(path string, content []byte) error { return os.WriteFile(path, nil, 0o644) },
		"missing": func(path string, _ []byte) error { return os.Remove(path) },
	} {
		folder := filepath.Join(t.TempDir(), "oci")
		ship(t, "layout", "testdata/other.wasm", folder)
		blobs, err := filepath.Glob(filepath.Join(folder, "blobs", "sha256", "*"))
		if err != nil || len(blobs) != 6 {
			t.Fatal(blobs, err)
		}
		for _, blob := range blobs {
			t.Run(name+" "+filepath.Base(blob)[:8], func(t *testing.T) {
				content, err := os.ReadFile(blob)
				if err != nil {
					t.Fatal(err)
				}
				if err := damage(blob, bytes.Clone(content)); err != nil {
					t.Fatal(err)
				}
				repository, _ := trial(t, func(http.ResponseWriter, *http.Request) bool { return true })
				refused(t, "", "push", folder, repository)
				if err := os.WriteFile(blob, content, 0o644); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// A version is a tag's name, which anybody may have made: nothing of it runs.
func TestHostileVersions(t *testing.T) {
	proof := filepath.Join(t.TempDir(), "it-ran")
	for _, version := range []string{
		"`touch " + proof + "`", "$$(touch " + proof + ")", "$(shell touch " + proof + ")", `x" || touch ` + proof + ` "`, "1.2.3\n\ttouch " + proof,
		"../x", "v1.2.3", "1.2.3-rc.1+b", "1 2", "1'2", "-h", "",
	} {
		out, err := in(t, "../..", nil, "make", "release", "VERSION="+version)
		if err == nil || !strings.Contains(out, "ship: VERSION is "+strconv.Quote(version)) || strings.Count(out, "ship: ") != 1 {
			t.Errorf("%q: %v\n%s", version, err, out)
		}
		if _, err := os.Stat(proof); err == nil {
			t.Fatalf("%q ran", version)
		}
	}
}

// What git is told not to show is not in the commit either.
func TestUntrackedFilesAreNotReleased(t *testing.T) {
	tree := t.TempDir()
	if err := os.WriteFile(filepath.Join(tree, "CHANGELOG.md"), []byte("## 1.2.3 - 2026-01-31\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"config", "status.showUntrackedFiles", "no"}} {
		if out, err := in(t, tree, nil, append([]string{"git"}, args...)...); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	if err := ready(tree, "1.2.3"); err == nil || !strings.Contains(err.Error(), "the tree is not clean, 1 files") {
		t.Errorf("%v", err)
	}
}
