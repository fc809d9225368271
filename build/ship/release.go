package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
)

// Names in a release's folder.
const (
	wasmFile       = "pinwheel.wasm"
	layoutFile     = "pinwheel-oci.tar"
	imagesFile     = "IMAGES"
	licencesFile   = "LICENSES"
	provenanceFile = "provenance.json"
	sumsFile       = "SHA256SUMS"
	hostsimPrefix  = "hostsim-"
	sbomSuffix     = ".cdx.json"
)

func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// release completes a folder that holds pinwheel.wasm and hostsim-SYSTEM-PROCESSOR for each platform: images, a bill of
// materials for each binary, licences, provenance and check sums. It runs in the root of the checkout that they were built from.
func release(folder string, about image.About, out io.Writer) error {
	r := releasing{folder: folder, about: about}
	if err := r.describe(); err != nil {
		return err
	}
	if err := r.images(out); err != nil {
		return err
	}
	text, err := licences(r.modules)
	if err != nil {
		return err
	}
	if err := r.write(licencesFile, text); err != nil {
		return err
	}
	commit, err := git(".", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	document, err := provenance(r.subjects, about, r.platforms, commit, r.modules)
	if err != nil {
		return err
	}
	if err := r.write(provenanceFile, document); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, sumsFile), []byte(r.sums.String()), 0o644)
}

type releasing struct {
	folder    string
	about     image.About
	platforms []string
	modules   []module  // of all binaries
	subjects  []subject // what the provenance speaks of
	sums      strings.Builder
}

// write adds a file to the release and to its check sums.
func (r *releasing) write(name string, content []byte) error {
	fmt.Fprintf(&r.sums, "%s  %s\n", sum(content), name)
	return os.WriteFile(filepath.Join(r.folder, name), content, 0o644)
}

// describe writes a bill of materials beside each binary.
func (r *releasing) describe() error {
	binaries, err := filepath.Glob(filepath.Join(r.folder, hostsimPrefix+"*-*"))
	if err != nil {
		return err
	}
	for _, path := range append(binaries, filepath.Join(r.folder, wasmFile)) {
		name := filepath.Base(path)
		if strings.HasSuffix(name, sbomSuffix) {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%w; make release builds it", err)
		}
		pkg, platform := "./plugin/wasm", "wasip1-wasm"
		if name != wasmFile {
			pkg, platform = "./hostsim/cmd/hostsim", strings.TrimPrefix(name, hostsimPrefix)
			r.platforms = append(r.platforms, platform)
		}
		modules, err := modulesOf(pkg, platform)
		if err != nil {
			return err
		}
		bom, err := sbom(name, content, r.about, modules)
		if err != nil {
			return err
		}
		fmt.Fprintf(&r.sums, "%s  %s\n", sum(content), name)
		if err := r.write(name+sbomSuffix, bom); err != nil {
			return err
		}
		r.subjects = append(r.subjects, subject{name, map[string]string{"sha256": sum(content)}})
		r.modules = union(r.modules, modules)
	}
	return nil
}

// images writes the OCI layout as one file, and what it holds as text.
func (r *releasing) images(out io.Writer) error {
	folder, err := os.MkdirTemp("", "layout")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var table bytes.Buffer
	if err := writeLayout(filepath.Join(r.folder, wasmFile), folder, r.about, io.MultiWriter(&table, out)); err != nil {
		return err
	}
	packed, err := packLayout(folder)
	if err != nil {
		return err
	}
	if err := r.write(layoutFile, packed); err != nil {
		return err
	}
	from, err := layout.FromPath(folder)
	if err != nil {
		return err
	}
	err = each(from, func(tag string, digest v1.Hash, _ v1.Image) error {
		r.subjects = append(r.subjects, subject{"pinwheel:" + tag, map[string]string{"sha256": digest.Hex}})
		return nil
	})
	if err != nil {
		return err
	}
	return r.write(imagesFile, table.Bytes())
}
