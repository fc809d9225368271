package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"text/tabwriter"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
)

// refName is where an OCI layout keeps an image's tag.
const refName = "org.opencontainers.image.ref.name"

// tagOf is a version's tag; that of the CNCF layout has -wasm behind it.
func tagOf(version string) string {
	if version == "dev" {
		return version
	}
	return "v" + version
}

// writeLayout writes both images of a module as an OCI layout, in place of what was in the folder:
// https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
func writeLayout(wasmFile, folder string, about image.About, out io.Writer) error {
	wasm, err := os.ReadFile(wasmFile)
	if err != nil {
		return fmt.Errorf("%w; build it with: make wasm", err)
	}
	compat, err := image.Compat(wasm, about)
	if err != nil {
		return err
	}
	cncf, err := image.CNCF(wasm, about)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, "oci-layout")); err == nil { // nothing else is ever removed
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	to, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	tag := tagOf(about.Version)
	err = errors.Join(
		to.AppendImage(compat, layout.WithAnnotations(map[string]string{refName: tag})),
		to.AppendImage(cncf, layout.WithAnnotations(map[string]string{refName: tag + "-wasm"})))
	if err != nil {
		return err
	}
	return digests(to, "", out)
}

// digests prints what a layout holds and, for those who run Istio or Envoy Gateway, the lines that name it.
func digests(from layout.Path, repository string, out io.Writer) error {
	if repository == "" {
		repository = "REGISTRY/pinwheel"
	}
	first := ""
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "tag\tmanifest digest\tfor")
	err := each(from, func(tag string, digest v1.Hash, img v1.Image) error {
		m, err := img.Manifest()
		if err != nil {
			return err
		}
		what := "Istio, Envoy Gateway"
		if m.Config.MediaType == image.WasmConfig {
			what = "oras and other tools of the CNCF layout"
		} else if first == "" {
			first = fmt.Sprintf("\nIstio, WasmPlugin           url: oci://%[1]s:%[2]s\n                            sha256: %[3]s\n"+
				"Envoy Gateway, code.image   url: %[1]s:%[2]s\n                            sha256: %[3]s\n", repository, tag, digest.Hex)
		}
		_, err = fmt.Fprintf(table, "%s\t%s\t%s\n", tag, digest, what)
		return err
	})
	if err != nil {
		return err
	}
	_ = table.Flush()
	fmt.Fprint(out, first)
	return nil
}

// each visits the images of a layout in order.
func each(from layout.Path, visit func(tag string, digest v1.Hash, img v1.Image) error) error {
	index, err := from.ImageIndex()
	if err != nil {
		return err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, d := range manifest.Manifests {
		img, err := from.Image(d.Digest)
		if err != nil {
			return err
		}
		if d.Annotations[refName] == "" {
			return fmt.Errorf("%s: image %s has no tag (%s)", from, d.Digest, refName)
		}
		if err := visit(d.Annotations[refName], d.Digest, img); err != nil {
			return err
		}
	}
	return nil
}

// packLayout makes a tar of a layout, the same bytes for the same layout.
func packLayout(folder string) ([]byte, error) {
	var files []image.File
	err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(p)
		name, _ := filepath.Rel(folder, p)
		files = append(files, image.File{Name: filepath.ToSlash(name), Content: content})
		return err
	})
	if err != nil {
		return nil, err
	}
	return image.Tar(files...)
}

// openLayout opens a layout that is a folder or a tar; the caller calls done.
func openLayout(name string) (from layout.Path, done func(), err error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", nil, fmt.Errorf("%w; write it with: make oci", err)
	}
	folder, done := name, func() {}
	if !info.IsDir() {
		if folder, err = os.MkdirTemp("", "layout"); err != nil {
			return "", nil, err
		}
		done = func() { _ = os.RemoveAll(folder) }
		if err := unpack(name, folder); err != nil {
			done()
			return "", nil, fmt.Errorf("%s is not an OCI layout in a tar: %w; write one with: make oci", name, err)
		}
	}
	if from, err = layout.FromPath(folder); err != nil {
		done()
		return "", nil, fmt.Errorf("%s is not an OCI layout: %w", name, err)
	}
	if err := intact(filepath.Join(folder, "blobs", "sha256")); err != nil {
		done()
		return "", nil, fmt.Errorf("%s is damaged: %w; fetch or write it again", name, err)
	}
	return from, done, nil
}

// intact finds a blob that is not what its name says. The library reads without looking, and not every registry looks.
func intact(blobs string) error {
	entries, err := os.ReadDir(blobs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(blobs, e.Name()))
		if err != nil {
			return err
		}
		if got := sum(content); got != e.Name() {
			return fmt.Errorf("blob %s has the digest %s", e.Name(), got)
		}
	}
	return nil
}

// unpack unpacks regular files; none gets out of the folder.
func unpack(archive, folder string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := errors.Join(root.MkdirAll(path.Dir(header.Name), 0o755), root.WriteFile(header.Name, content, 0o644)); err != nil {
			return err
		}
	}
}
