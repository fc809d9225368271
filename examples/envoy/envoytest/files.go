package envoytest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Replace makes text the content of the file name at one moment, by a rename: Envoy
// watches its resource files for those, never for writes.
func Replace(name, text string) error {
	next := name + ".next"
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(next, name)
}

// ErrNoWasm reports that the plugin has not been built.
var ErrNoWasm = errors.New("envoytest: dist/pinwheel.wasm is missing; run `make wasm`")

// Root returns the folder of go.mod at or above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("envoytest: no go.mod above the working directory")
		}
		dir = up
	}
}

// Wasm returns the path of the built plugin under root, or ErrNoWasm.
func Wasm(root string) (string, error) {
	name := filepath.Join(root, "dist", "pinwheel.wasm")
	if fi, err := os.Stat(name); err != nil || fi.Size() == 0 {
		return "", ErrNoWasm
	}
	return name, nil
}
