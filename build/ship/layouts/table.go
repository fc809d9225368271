package layouts

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
)

// zstdFrame is a whole zstd frame, of no content, and longer than a gzip header.
var zstdFrame = []byte{0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x00, 0x01, 0x00, 0x00, 0x99, 0xe9, 0xd8, 0x51}

// All are the layouts: first those that gateways take.
var All = []Layout{
	{"the tag of a release", nil, "", func(r Registry, tag string) (string, string) {
		r.push(tag, compat(r))
		return r.Repository + ":" + tag, ""
	}},
	{"by digest", nil, "", func(r Registry, tag string) (string, string) {
		return r.Repository + "@sha256:" + r.push(tag, compat(r)), ""
	}},
	{"tag, and sha256 of the manifest", nil, "", func(r Registry, tag string) (string, string) {
		return r.Repository + ":" + tag, r.push(tag, compat(r))
	}},
	{"Docker manifest and layer", nil, "", parts(dockerLayout, func(wasm []byte) []image.Blob {
		return []image.Blob{{Type: types.DockerLayer, Content: named("plugin.wasm")(wasm)}}
	})},
	{"two layers, the module in the last", nil, "", parts(ociLayout, func(wasm []byte) []image.Blob {
		return []image.Blob{{Type: types.OCILayer, Content: named("LICENSE")([]byte("text"))}, {Type: types.OCILayer, Content: named("plugin.wasm")(wasm)}}
	})},
	{"a second file in the layer", nil, "", layer(types.OCILayer, func(wasm []byte) []byte {
		return tarGzOf(image.File{Name: "LICENSE", Content: []byte("text")}, image.File{Name: "plugin.wasm", Content: wasm})
	})},
	{"plugin.wasm in a folder", nil, "", layer(types.OCILayer, named("usr/lib/plugin.wasm"))},
	{"two layers, the module bare (older tools)", nil, "", parts(ociLayout, func(wasm []byte) []image.Blob {
		return []image.Blob{{Type: "application/vnd.module.wasm.config.v1+json", Content: []byte("{}")}, {Type: "application/vnd.module.wasm.content.layer.v1+wasm", Content: wasm}}
	})},
	{"the tag of an index", nil, "", func(r Registry, tag string) (string, string) {
		r.pushIndex(tag, "amd64")
		return r.Repository + ":" + tag, ""
	}},
	{"an index, sha256 of its linux/amd64 manifest", nil, "", func(r Registry, tag string) (string, string) {
		r.pushIndex(tag, "amd64")
		return r.Repository + ":" + tag, hexOf(compat(r))
	}},

	{"the tag of a release with -wasm (CNCF)", rules.kind, "invalid media type application/wasm (expect application/vnd.oci.image.layer.v1.tar+gzip)",
		func(r Registry, tag string) (string, string) {
			r.push(tag, made(image.CNCF(r.Wasm, about)))
			return r.Repository + ":" + tag, ""
		}},
	{"oras push without a media type", rules.kind, "invalid media type application/vnd.oci.image.layer.v1.tar (expect application/vnd.oci.image.layer.v1.tar+gzip)", parts(ociLayout, func(wasm []byte) []image.Blob {
		return []image.Blob{{Type: types.OCIUncompressedLayer, Content: wasm, Annotations: map[string]string{"org.opencontainers.image.title": "plugin.wasm"}}}
	})},
	{"plain tar", rules.kind, "invalid media type application/vnd.oci.image.layer.v1.tar (expect application/vnd.oci.image.layer.v1.tar+gzip)", layer(types.OCIUncompressedLayer, func(wasm []byte) []byte {
		return tarOf(image.File{Name: "plugin.wasm", Content: wasm})
	})},
	{"plain tar that is called gzip", rules.gzip, "failed to parse layer as tar.gz: gzip: invalid header", layer(types.OCILayer, func(wasm []byte) []byte {
		return tarOf(image.File{Name: "plugin.wasm", Content: wasm})
	})},
	{"the bare module called tar+gzip", rules.gzip, "failed to parse layer as tar.gz: gzip: invalid header", layer(types.OCILayer, func(wasm []byte) []byte { return wasm })},
	{"the gzipped module without a tar", rules.archive, "could not extract wasm binary: archive/tar: invalid tar header", layer(types.OCILayer, func(wasm []byte) []byte { return made(image.Gzip(wasm)) })},
	{"zstd", rules.kind, "invalid media type application/vnd.oci.image.layer.v1.tar+zstd (expect application/vnd.oci.image.layer.v1.tar+gzip)", layer(types.OCILayerZStd, func([]byte) []byte { return zstdFrame })},
	{"zstd that is called gzip", rules.gzip, "failed to parse layer as tar.gz: gzip: invalid header", layer(types.OCILayer, func([]byte) []byte { return zstdFrame })},
	{"main.wasm", rules.file, "plugin.wasm not found in the archive", layer(types.OCILayer, named("main.wasm"))},
	{"PLUGIN.WASM", rules.file, "plugin.wasm not found in the archive", layer(types.OCILayer, named("PLUGIN.WASM"))},
	{"two layers, the module in the first", rules.file, "plugin.wasm not found in the archive", parts(ociLayout, func(wasm []byte) []image.Blob {
		return []image.Blob{{Type: types.OCILayer, Content: named("plugin.wasm")(wasm)}, {Type: types.OCILayer, Content: named("LICENSE")([]byte("text"))}}
	})},
	{"an empty layer", rules.file, "plugin.wasm not found in the archive", layer(types.OCILayer, func([]byte) []byte { return tarGzOf() })},
	{"no layer", rules.layers, "number of layers must be greater than zero", parts(ociLayout, func([]byte) []image.Blob { return nil })},
	{"a layer that ends early", rules.archive, "could not extract wasm binary: ... unexpected EOF", layer(types.OCILayer, func(wasm []byte) []byte {
		whole := named("plugin.wasm")(wasm)
		return whole[:len(whole)/2]
	})},
	{"Docker manifest, OCI layer", rules.kind, "invalid media type application/vnd.oci.image.layer.v1.tar+gzip (expect application/vnd.docker.image.rootfs.diff.tar.gzip)",
		parts(dockerLayout, func(wasm []byte) []image.Blob {
			return []image.Blob{{Type: types.OCILayer, Content: named("plugin.wasm")(wasm)}}
		})},
	{"OCI manifest, Docker layer", rules.kind, "invalid media type application/vnd.docker.image.rootfs.diff.tar.gzip (expect application/vnd.oci.image.layer.v1.tar+gzip)", layer(types.DockerLayer, named("plugin.wasm"))},
	{"not a module", rules.wasm, "fetched Wasm binary from ... is invalid", layer(types.OCILayer, func([]byte) []byte { return named("plugin.wasm")([]byte("text, not a module")) })},
	{"an empty plugin.wasm", rules.wasm, "fetched Wasm binary from ... is invalid", layer(types.OCILayer, func([]byte) []byte { return named("plugin.wasm")(nil) })},
	{"an index by its own digest", rules.digest, wrong, func(r Registry, tag string) (string, string) {
		return r.Repository + "@sha256:" + r.pushIndex(tag, "amd64"), ""
	}},
	{"an index, sha256 of the index", rules.digest, wrong, func(r Registry, tag string) (string, string) {
		return r.Repository + ":" + tag, r.pushIndex(tag, "amd64")
	}},
	{"an index for arm64 only", rules.platform, "no child with platform linux/amd64 in index", func(r Registry, tag string) (string, string) {
		r.pushIndex(tag, "arm64")
		return r.Repository + ":" + tag, ""
	}},
	{"sha256 of the file", rules.digest, wrong, func(r Registry, tag string) (string, string) {
		r.push(tag, compat(r))
		sum := sha256.Sum256(r.Wasm)
		return r.Repository + ":" + tag, hex.EncodeToString(sum[:])
	}},
	{"sha256 of the layer", rules.digest, wrong, func(r Registry, tag string) (string, string) {
		img := compat(r)
		r.push(tag, img)
		return r.Repository + ":" + tag, hexOf(made(img.Layers())[0])
	}},
	{"a tag that is not there", rules.unreachable, "could not fetch manifest: ... MANIFEST_UNKNOWN", func(r Registry, tag string) (string, string) {
		return r.Repository + ":" + tag, ""
	}},
}

// pushIndex stores an index with the published image for one processor.
func (r Registry) pushIndex(tag, arch string) string {
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: compat(r), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
	})
	must(remote.WriteIndex(r.tag(tag), index))
	return hexOf(index)
}
