package standalone

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
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

// Push publishes a wasm module as Envoy Gateway and Istio want it: an OCI image
// with one layer of tar and gzip that holds plugin.wasm. It returns the reference
// and the hex digits of the manifest's digest.
func (r *Registry) Push(wasm []byte, tag string) (image, digest string, err error) {
	var layer bytes.Buffer
	zip := gzip.NewWriter(&layer)
	archive := tar.NewWriter(zip)
	if err := archive.WriteHeader(&tar.Header{Name: "plugin.wasm", Mode: 0o644, Size: int64(len(wasm))}); err != nil {
		return "", "", err
	}
	if _, err := archive.Write(wasm); err != nil {
		return "", "", err
	}
	if err := archive.Close(); err != nil {
		return "", "", err
	}
	if err := zip.Close(); err != nil {
		return "", "", err
	}
	built, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		static.NewLayer(layer.Bytes(), types.OCILayer))
	if err != nil {
		return "", "", err
	}
	image = r.Addr + "/pinwheel:" + tag
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", "", err
	}
	if err := remote.Write(ref, built); err != nil {
		return "", "", err
	}
	var hash v1.Hash
	if hash, err = built.Digest(); err != nil {
		return "", "", err
	}
	return image, hash.Hex, nil
}
