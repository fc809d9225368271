package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// An old file stays until the new one is whole, and its links and permissions stay for ever.
func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", link); err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	broken := errors.New("broken")
	err := writeWhole(link, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		is("old")
		return broken
	})
	if is("old"); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := writeWhole(link, writeAll([]byte("new"))); err != nil {
		t.Error(err)
	}
	is("new")
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link: %v, %v", info, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("left behind: %v, %v", all, err)
	}
	nowhere := filepath.Join(dir, "no", "a")
	if err := writeWhole(nowhere, writeAll(nil)); err == nil || err.Error() != "open "+nowhere+": no such file or directory" {
		t.Error(err)
	}
	if err := writeWhole(os.DevNull, writeAll([]byte("new"))); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s: %v, %v", os.DevNull, info, err)
	}
}
