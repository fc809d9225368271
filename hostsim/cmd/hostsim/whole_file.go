package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeWhole has a file filled and puts it at path when it is whole: until then, and after an error, what was there before
// stays. What is no plain file, such as a pipe or /dev/stdout, is written as it is.
func writeWhole(path string, fill func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			return errors.Join(fill(file), file.Close())
		}
		mode = info.Mode().Perm()
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".hostsim-*")
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		failed.Path = path // not a name that nobody gave
	}
	if err != nil {
		return err
	}
	err = errors.Join(fill(file), file.Chmod(mode), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}

// writeAll is a fill of writeWhole that writes text.
func writeAll(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}
