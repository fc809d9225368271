package standalone

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is an OCI registry in this process, on a loopback port. Envoy Gateway
// talks HTTP to registries there.
type Registry struct {
	// Addr is host:port.
	Addr string

	server *http.Server
}

// Serve opens an empty registry.
func Serve() (*Registry, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	r := &Registry{Addr: l.Addr().String(), server: &http.Server{Handler: registry.New(quiet)}}
	go r.server.Serve(l)
	return r, nil
}

// Close stops serving.
func (r *Registry) Close() { r.server.Close() }

// told is what ship prints for Envoy Gateway's users to copy.
var told = regexp.MustCompile(`Envoy Gateway, code\.image +url: (\S+)\s+sha256: ([0-9a-f]{64})`)

// Push publishes a module as a release does, by the program of that name, and
// returns the reference and the hex digits of the digest that it prints. dir takes
// files and must be empty.
func (r *Registry) Push(ctx context.Context, ship, dir string, wasm []byte, version string) (image, digest string, err error) {
	module, layout := filepath.Join(dir, "pinwheel.wasm"), filepath.Join(dir, "oci")
	if err := os.WriteFile(module, wasm, 0o644); err != nil {
		return "", "", err
	}
	if out, err := exec.CommandContext(ctx, ship, "layout", "--version", version, module, layout).CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("standalone: ship layout: %w\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, ship, "push", layout, r.Addr+"/pinwheel").CombinedOutput()
	if err != nil {
		return "", "", fmt.Errorf("standalone: ship push: %w\n%s", err, out)
	}
	found := told.FindStringSubmatch(string(out))
	if found == nil {
		return "", "", fmt.Errorf("standalone: ship push does not say what Envoy Gateway wants to hear:\n%s", out)
	}
	return found[1], found[2], nil
}
