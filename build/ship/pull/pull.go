// Package pull gets a module out of an image by the rules of Istio's agent and of Envoy Gateway, and says in one line which
// rule an image breaks. The rules are theirs, read from
// https://github.com/istio/istio/blob/master/pkg/wasm/imagefetcher.go, cache.go beside it, and
// https://github.com/envoyproxy/gateway/tree/main/internal/wasm; `make fetchers` holds this package to both.
package pull

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
)

// The rules, one error each; texts that wrap them say what was found.
var (
	ErrUnreachable = errors.New("no image there")
	ErrDigest      = errors.New("another manifest digest")
	ErrPlatform    = errors.New("an index without linux/amd64")
	ErrLayers      = errors.New("no layer")
	ErrLayerType   = errors.New("media type of the last layer")
	ErrCompression = errors.New("the layer is not gzip")
	ErrArchive     = errors.New("the layer is not a whole tar")
	ErrFileName    = errors.New("no plugin.wasm in the layer")
	ErrNotWasm     = errors.New("plugin.wasm is not WebAssembly")
)

// maxSize bounds what is unpacked, in bytes; it is the gateways' bound too.
const maxSize = 256 << 20

// legacyLayer is the module as it is, in images of two layers that older tools made.
const legacyLayer types.MediaType = "application/vnd.module.wasm.content.layer.v1+wasm"

// Module pulls the module that the gateways would get from a reference, and the hex digest of the manifest that they compare.
// sha256 is what stands in WasmPlugin's or EnvoyExtensionPolicy's field, or empty. A registry on localhost or 127.0.0.1 is
// asked by plain HTTP, others by HTTPS. The error is one of the above, wrapped.
func Module(reference, sha256 string, options ...remote.Option) (wasm []byte, manifest string, err error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	got, err := remote.Get(ref, options...)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	img, err := got.Image() // of an index, what it has for linux/amd64
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrPlatform, err)
	}
	hash, err := img.Digest()
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if named, ok := ref.(name.Digest); ok && sha256 == "" {
		sha256 = strings.TrimPrefix(named.DigestStr(), "sha256:")
	}
	if sha256 != "" && sha256 != hash.Hex {
		return nil, hash.Hex, fmt.Errorf("%w: the image's is %s, asked for was %s: not that of an index, a layer or the file", ErrDigest, hash.Hex, sha256)
	}
	wasm, err = unpack(img)
	if err == nil && (len(wasm) < 8 || !bytes.HasPrefix(wasm, []byte("\x00asm"))) {
		err = fmt.Errorf("%w: %d bytes, which do not begin as a module does", ErrNotWasm, len(wasm))
	}
	return wasm, hash.Hex, err
}

func unpack(img v1.Image) ([]byte, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) == 0 {
		return nil, errors.Join(ErrLayers, err)
	}
	want := types.OCILayer
	if manifest.MediaType == types.DockerManifestSchema2 {
		want = types.DockerLayer
	}
	last := len(layers) - 1
	if have := manifest.Layers[last].MediaType; have != want {
		for i, l := range manifest.Layers {
			if want == types.OCILayer && len(layers) == 2 && l.MediaType == legacyLayer {
				return readLayer(layers[i])
			}
		}
		return nil, fmt.Errorf("%w: %s, wanted is %s", ErrLayerType, have, want)
	}
	packed, err := readLayer(layers[last])
	if err != nil {
		return nil, err
	}
	return untar(packed)
}

func readLayer(l v1.Layer) ([]byte, error) {
	r, err := l.Compressed()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxSize))
}

func untar(packed []byte) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCompression, err)
	}
	archive := tar.NewReader(io.LimitReader(unzipped, maxSize))
	var names []string
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return nil, fmt.Errorf("%w: it holds [%s]", ErrFileName, strings.Join(names, " "))
		} else if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrArchive, err)
		}
		if path.Base(header.Name) == image.FileName {
			wasm, err := io.ReadAll(archive)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrArchive, err)
			}
			return wasm, nil
		}
		names = append(names, header.Name)
	}
}
