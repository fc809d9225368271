package pypi

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// content is the files of a wheel, by name.
type content map[string]string

var good = content{"tool/__init__.py": "no", "tool/_bin/tool": "ELF", "tool.libs/a.so": "so"}

// tool is a wheel of which two files are wanted.
var tool = Wheel{Project: "tool", Version: "1.2.3", Main: "bin/tool", Place: func(name string) string {
	switch name {
	case "tool/_bin/tool":
		return "bin/tool"
	case "tool.libs/a.so", "../outside":
		return name
	}
	return ""
}}

// deliver is a Download that writes a wheel with the given files.
func deliver(files content) func(context.Context, string, string, string) error {
	return func(_ context.Context, project, version, dir string) error {
		f, err := os.Create(filepath.Join(dir, project+"-"+version+"-py3-none-any.whl"))
		if err != nil {
			return err
		}
		defer f.Close()
		z := zip.NewWriter(f)
		for name, text := range files {
			w, err := z.Create(name)
			if err != nil {
				return err
			}
			if _, err := w.Write([]byte(text)); err != nil {
				return err
			}
		}
		return z.Close()
	}
}

func TestWheelIsUnpackedOnce(t *testing.T) {
	var downloads atomic.Int32
	write := deliver(good)
	c := Cache{Dir: filepath.Join(t.TempDir(), "new", "cache"), Download: func(ctx context.Context, p, v, dir string) error {
		downloads.Add(1)
		return write(ctx, p, v, dir)
	}}
	for range 2 {
		folder, err := c.Folder(t.Context(), tool)
		if err != nil {
			t.Fatal(err)
		}
		mustHold(t, folder, "bin/tool", "ELF")
		mustHold(t, folder, "tool.libs/a.so", "so")
		if entries, _ := os.ReadDir(folder); len(entries) != 2 {
			t.Errorf("the folder holds %v, want bin and tool.libs", entries)
		}
		if fi, err := os.Stat(filepath.Join(folder, "bin/tool")); err != nil || fi.Mode().Perm()&0o100 == 0 {
			t.Errorf("bin/tool is not executable: %v, %v", fi, err)
		}
	}
	if n := downloads.Load(); n != 1 {
		t.Errorf("%d downloads, want 1", n)
	}
	onlyVersions(t, c.Dir, "1.2.3")
}

// Every process downloads for itself and the first rename wins; all must get a whole folder, and no half-done one may
// stay behind.
func TestWheelFetchedByManyAtOnce(t *testing.T) {
	const n = 8
	var inside sync.WaitGroup
	inside.Add(n)
	write := deliver(good)
	c := Cache{Dir: t.TempDir(), Download: func(ctx context.Context, p, v, dir string) error {
		inside.Done()
		inside.Wait() // everybody has found the cache empty
		return write(ctx, p, v, dir)
	}}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			folder, err := c.Folder(context.Background(), tool)
			if err != nil {
				t.Error(err)
				return
			}
			mustHold(t, folder, "bin/tool", "ELF")
		})
	}
	all.Wait()
	onlyVersions(t, c.Dir, "1.2.3")
}

func TestPinnedDigest(t *testing.T) {
	dir := t.TempDir()
	one := content{"tool/_bin/tool": "ELF"} // one file: the same bytes each time
	if err := deliver(one)(t.Context(), "tool", "1.2.3", dir); err != nil {
		t.Fatal(err)
	}
	wheel, err := os.ReadFile(filepath.Join(dir, "tool-1.2.3-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(wheel)
	pinned := tool
	pinned.SHA256 = []string{strings.Repeat("0", 64), hex.EncodeToString(sum[:])}
	c := Cache{Dir: t.TempDir(), Download: deliver(one)}
	if _, err := c.Folder(t.Context(), pinned); err != nil {
		t.Error(err)
	}
	c = Cache{Dir: t.TempDir(), Download: deliver(content{"tool/_bin/tool": "other"})}
	if _, err := c.Folder(t.Context(), pinned); !errors.Is(err, ErrDigest) {
		t.Errorf("error %v, want %v", err, ErrDigest)
	}
	onlyVersions(t, c.Dir)
}

func TestWheelFailures(t *testing.T) {
	cases := []struct {
		name     string
		version  string
		download func(context.Context, string, string, string) error
		want     error
	}{
		{"a path as version", "../1.2.3", deliver(good), ErrVersion},
		{"no version", "", deliver(good), ErrVersion},
		{"no wheel", "1.2.3", func(context.Context, string, string, string) error { return nil }, ErrDownload},
		{"download fails", "1.2.3", func(context.Context, string, string, string) error { return ErrDownload }, ErrDownload},
		{"wheel without the file", "1.2.3", deliver(content{"tool/__init__.py": ""}), ErrContent},
		{"a file that leads outside", "1.2.3", deliver(content{"tool/_bin/tool": "ELF", "../outside": ""}), ErrContent},
		{"not a zip", "1.2.3", func(_ context.Context, _, _, dir string) error {
			return os.WriteFile(filepath.Join(dir, "x.whl"), []byte("<html>"), 0o644)
		}, ErrContent},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := tool
			w.Version = c.version
			cache := Cache{Dir: t.TempDir(), Download: c.download}
			if _, err := cache.Folder(t.Context(), w); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			onlyVersions(t, cache.Dir)
		})
	}
}

func mustHold(t *testing.T, folder, name, want string) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(text) != want {
		t.Errorf("%s holds %q, %v; want %q", name, text, err, want)
	}
}

func onlyVersions(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("cache holds %q, want %q", got, want)
	}
}
