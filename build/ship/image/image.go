// Package image makes OCI images of a WebAssembly module. The same module, version and time give the same bytes on every
// machine, with the same version of Go (its gzip); nothing is asked of a clock, an environment or a registry.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types of the CNCF layout: https://tag-runtime.cncf.io/wgs/wasm/deliverables/wasm-oci-artifact/
const (
	WasmConfig types.MediaType = "application/vnd.wasm.config.v0+json"
	WasmLayer  types.MediaType = "application/wasm"
)

// FileName is the one name under which Istio and Envoy Gateway look for a module in a layer.
const FileName = "plugin.wasm"

// About is what an image says of its module.
type About struct {
	// Version is a semantic version without a leading v, or dev.
	Version string
	// Created stands in the image; the zero time is 1970.
	Created time.Time
}

func (a About) created() v1.Time {
	if a.Created.IsZero() {
		return v1.Time{Time: time.Unix(0, 0).UTC()}
	}
	return v1.Time{Time: a.Created.UTC()}
}

func (a About) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.created": a.created().Format(time.RFC3339),
		"org.opencontainers.image.source":  "https://github.com/pinwheel-proxy/pinwheel",
		"org.opencontainers.image.title":   "pinwheel",
		"org.opencontainers.image.version": a.Version,
	}
}

// Compat is the layout that Istio and Envoy Gateway pull ("compat variant", that of `docker build` from scratch): an image
// manifest with one layer, a gzipped tar that holds plugin.wasm and nothing else.
// https://github.com/solo-io/wasm/blob/master/spec/spec-compat.md
func Compat(wasm []byte, about About) (v1.Image, error) {
	archive, err := Tar(File{FileName, wasm})
	if err != nil {
		return nil, err
	}
	packed, err := Gzip(archive)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(v1.ConfigFile{
		// What docker build writes for a scratch image; neither gateway reads it, and a container runtime wants a platform.
		Architecture: "amd64",
		OS:           "linux",
		Created:      about.created(),
		RootFS:       v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{digest(archive)}},
		History:      []v1.History{{Created: about.created(), CreatedBy: "COPY " + FileName + " ./"}},
	})
	if err != nil {
		return nil, err
	}
	return New(types.OCIManifestSchema1, Blob{types.OCIConfigJSON, config, nil}, about.annotations(), Blob{types.OCILayer, packed, nil})
}

// CNCF is the layout of the CNCF's WebAssembly group, for tools that pull a module as it is. Istio and Envoy Gateway refuse it.
func CNCF(wasm []byte, about About) (v1.Image, error) {
	config, err := json.Marshal(struct {
		Created      v1.Time   `json:"created"`
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		LayerDigests []v1.Hash `json:"layerDigests"`
	}{about.created(), "wasm", "wasip1", []v1.Hash{digest(wasm)}})
	if err != nil {
		return nil, err
	}
	named := map[string]string{"org.opencontainers.image.title": FileName}
	return New(types.OCIManifestSchema1, Blob{WasmConfig, config, nil}, about.annotations(), Blob{WasmLayer, wasm, named})
}

// File is one file of a layer.
type File struct {
	Name    string
	Content []byte
}

// Tar archives files in order, readable by all, of root and of 1970.
func Tar(files ...File) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: int64(len(f.Content)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return b.Bytes(), nil
}

// Gzip compresses without a name or a time in the header.
func Gzip(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	if _, err := w.Write(content); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	return b.Bytes(), nil
}
