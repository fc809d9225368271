// Package layouts lists the ways in which a WebAssembly module gets into a registry, and for each whether Istio and Envoy
// Gateway take it, and what they say if not. The tests of build/ship hold package pull to it, `make fetchers` the gateways'
// own code.
package layouts

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
	"github.com/pinwheel-proxy/pinwheel/build/ship/pull"
)

// Layout is one way.
type Layout struct {
	Name string
	// Breaks is the rule of package pull that the layout breaks, nil if gateways take it.
	Breaks error
	// Says is what both gateways report, " ... " standing for any text; empty if they take it.
	Says string
	// put stores the layout under a tag and returns what a user then names: a reference and, or empty, a sha256.
	put func(r Registry, tag string) (reference, sha256 string)
}

// Put stores the layout in the registry. It panics where an in-process registry fails.
func (l Layout) Put(r Registry) (reference, sha256 string) {
	return l.put(r, strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(l.Name)), "-"))
}

// Said tells whether a gateway's report is the one that Says gives.
func (l Layout) Said(report string) bool {
	for _, part := range strings.Split(l.Says, " ... ") {
		_, after, found := strings.Cut(report, part)
		if !found {
			return false
		}
		report = after
	}
	return true
}

// Registry is one in this process, with what it is asked to hold.
type Registry struct {
	// Repository is HOST:PORT/NAME.
	Repository string
	// Wasm is the module that images are made of.
	Wasm []byte
}

// Start starts a registry on 127.0.0.1, without TLS and without users; the caller calls stop.
func Start(wasm []byte) (r Registry, stop func()) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	return Registry{strings.TrimPrefix(server.URL, "http://") + "/pinwheel", wasm}, server.Close
}

func (r Registry) tag(tag string) name.Tag {
	t, err := name.NewTag(r.Repository + ":" + tag)
	must(err)
	return t
}

func (r Registry) push(tag string, img v1.Image) string {
	must(remote.Write(r.tag(tag), img))
	return hexOf(img)
}

func hexOf(d interface{ Digest() (v1.Hash, error) }) string {
	hash, err := d.Digest()
	must(err)
	return hash.Hex
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("layouts: %v", err))
	}
}

func made[T any](value T, err error) T {
	must(err)
	return value
}

var about = image.About{Version: "1.2.3"}

// compat is the layout that Pinwheel is published in.
func compat(r Registry) v1.Image { return made(image.Compat(r.Wasm, about)) }

// parts is a layout of an image manifest of any type and layers.
func parts(manifest types.MediaType, layers func(wasm []byte) []image.Blob) func(Registry, string) (string, string) {
	return func(r Registry, tag string) (string, string) {
		config := image.Blob{Type: types.OCIConfigJSON, Content: []byte(`{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}`)}
		if manifest == types.DockerManifestSchema2 {
			config.Type = types.DockerConfigJSON
		}
		r.push(tag, made(image.New(manifest, config, nil, layers(r.Wasm)...)))
		return r.Repository + ":" + tag, ""
	}
}

// layer is a layout of one layer in an OCI image.
func layer(kind types.MediaType, content func(wasm []byte) []byte) func(Registry, string) (string, string) {
	return parts(types.OCIManifestSchema1, func(wasm []byte) []image.Blob { return []image.Blob{{Type: kind, Content: content(wasm)}} })
}

func tarOf(files ...image.File) []byte   { return made(image.Tar(files...)) }
func tarGzOf(files ...image.File) []byte { return made(image.Gzip(tarOf(files...))) }

// named is a layer of one file, tar and gzip.
func named(file string) func(wasm []byte) []byte {
	return func(wasm []byte) []byte { return tarGzOf(image.File{Name: file, Content: wasm}) }
}

const ociLayout, dockerLayout = types.OCIManifestSchema1, types.DockerManifestSchema2

// wrong is what gateways say of a digest that is not the manifest's.
const wrong = "module downloaded from ... has checksum ... which does not match:"

var rules = struct{ unreachable, digest, platform, layers, kind, gzip, archive, file, wasm error }{
	pull.ErrUnreachable, pull.ErrDigest, pull.ErrPlatform, pull.ErrLayers, pull.ErrLayerType, pull.ErrCompression, pull.ErrArchive, pull.ErrFileName, pull.ErrNotWasm,
}
