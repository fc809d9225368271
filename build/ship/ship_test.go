package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
)

// shipped is the module that users load; make wasm builds it.
const shipped = "../../dist/pinwheel.wasm"

// ship runs a command line that must succeed, and returns what it prints.
func ship(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(args, &out); err != nil {
		t.Fatalf("ship %s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

// refused runs one that must fail with a text.
func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(args, &out); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") && want != "usage:" {
		t.Errorf("ship %s: %v, want one line with %q", strings.Join(args, " "), err, want)
	}
}

func shippedModule(t *testing.T) []byte {
	t.Helper()
	wasm, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatalf("%v; build it with: make wasm", err)
	}
	return wasm
}

// The digest is one of module, version and time: of this known input it is this one, on any machine.
func TestDigestIsStable(t *testing.T) {
	about, wasm := image.About{Version: "1.2.3"}, []byte("\x00asm\x01\x00\x00\x00")
	compat, err := image.Compat(wasm, about)
	if err != nil {
		t.Fatal(err)
	}
	cncf, err := image.CNCF(wasm, about)
	if err != nil {
		t.Fatal(err)
	}
	for want, img := range map[string]v1.Image{
		"dd06dedcea10e1fd6bc5c9a4a81f26ffed64d2abeef77ef6d9689a9fe0b63b10": compat,
		"cc1938f6dd93f552527ea718575f60e26e8be949e5e7d0d3a362ab1baa902b73": cncf,
	} {
		manifest, err := img.RawManifest()
		if err != nil {
			t.Fatal(err)
		}
		if got := sum(manifest); got != want {
			t.Errorf("%s, want %s:\n%s", got, want, manifest)
		}
	}
}

func TestPublishedImageIsPulledBack(t *testing.T) {
	wasm := shippedModule(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/team/pinwheel"
	folder := filepath.Join(t.TempDir(), "oci")
	table := ship(t, "layout", "--version", "1.2.3", shipped, folder)
	if again := ship(t, "layout", "--version", "1.2.3", shipped, folder); again != table {
		t.Errorf("written twice:\n%s%s", table, again)
	}
	file := filepath.Join(t.TempDir(), "oci.tar")
	packed, err := packLayout(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, packed, 0o644); err != nil {
		t.Fatal(err)
	}
	pushed := ship(t, "push", file, repository)
	if pushed != ship(t, "push", folder, repository) {
		t.Error("pushed twice, two answers")
	}
	if want := strings.ReplaceAll(table, "REGISTRY/pinwheel", repository); pushed != want {
		t.Errorf("%s, want %s", pushed, want)
	}
	_, after, _ := strings.Cut(pushed, "sha256: ")
	digest := after[:64]
	for _, reference := range []string{repository + ":v1.2.3", "oci://" + repository + ":v1.2.3", repository + "@sha256:" + digest} {
		said := ship(t, "check", "--sha256", digest, reference)
		if !strings.Contains(said, "module   sha256:"+sum(wasm)) || !strings.Contains(said, "manifest sha256:"+digest) {
			t.Errorf("%s: %s", reference, said)
		}
	}
	refused(t, "another manifest digest", "check", "--sha256", sum(wasm), repository+":v1.2.3")
	refused(t, "application/wasm, wanted is", "check", repository+":v1.2.3-wasm")
	refused(t, ":v9.9.9: no image there", "check", repository+":v9.9.9")
	refused(t, "without sha256:", "check", "--sha256", "sha256:"+digest, repository+":v1.2.3")

	ship(t, "layout", "--version", "1.2.3", "testdata/other.wasm", folder)
	refused(t, "a version is pushed once", "push", folder, repository)
	refused(t, "names no repository", "push", folder, repository+":v1.2.3")
	refused(t, "make oci", "push", filepath.Join(folder, "nothing"), repository)
	refused(t, "not an OCI layout", "push", t.TempDir(), repository)
	refused(t, "make oci", "push", shipped, repository)
}

func TestCommandLine(t *testing.T) {
	refused(t, "usage:")
	refused(t, "usage:", "push", "one")
	refused(t, "usage:", "fly", "one")
	refused(t, "usage:", "check", "--no-such", "one")
	refused(t, "make wasm", "layout", "no.wasm", t.TempDir())
	refused(t, "a loopback address", "registry", "0.0.0.0:0")
	for _, epoch := range []string{"yesterday", "-1", "9223372036854775807"} {
		t.Setenv("SOURCE_DATE_EPOCH", epoch)
		refused(t, "allowed are seconds since 1970", "layout", shipped, t.TempDir())
	}
}

// A registry that wants a password gets the one that docker login has stored, and nobody else's push gets through.
func TestPushLogsInAsDockerDoes(t *testing.T) {
	open := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ci" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="team"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	folder, docker := filepath.Join(t.TempDir(), "oci"), t.TempDir()
	ship(t, "layout", "testdata/other.wasm", folder)
	t.Setenv("DOCKER_CONFIG", docker)
	refused(t, "log in with docker login or crane auth login", "push", folder, host+"/pinwheel")
	login := fmt.Sprintf(`{"auths":{%q:{"username":"ci","password":"secret"}}}`, host)
	if err := os.WriteFile(filepath.Join(docker, "config.json"), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	ship(t, "push", folder, host+"/pinwheel")
	ship(t, "check", host+"/pinwheel:dev")
}

// The trial registry of the page: it says where it is, and takes what is pushed.
func TestTrialRegistry(t *testing.T) {
	lines, said := io.Pipe()
	go func() { said.CloseWithError(run([]string{"registry", "127.0.0.1:0"}, said)) }() // until the tests end
	line, err := bufio.NewReader(lines).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "registry on ")
	if err != nil || !found {
		t.Fatalf("%q %v", line, err)
	}
	folder := filepath.Join(t.TempDir(), "oci")
	ship(t, "layout", "testdata/other.wasm", folder)
	ship(t, "push", folder, address+"/pinwheel")
	ship(t, "check", address+"/pinwheel:dev")
}
