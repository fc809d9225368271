package envoytest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What an Envoy that ends at once has said decides the error. The first line is Envoy
// 1.38.3's, of PyPI.
func TestStartSaysWhyEnvoyEnds(t *testing.T) {
	for said, want := range map[string]error{
		"Failed to create Wasm VM using envoy.wasm.runtime.v8 runtime. Envoy was compiled without support for it": ErrWithoutWasm,
		"Unable to create Wasm plugin pinwheel": ErrNotReady,
	} {
		bin := filepath.Join(t.TempDir(), "envoy")
		if err := os.WriteFile(bin, []byte("#!/bin/sh\necho '"+said+"'\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := Start(t.Context(), Options{Binary: bin, Bootstrap: "none.yaml", Concurrency: 1})
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", said, err, want)
		}
		if where := map[error]string{ErrWithoutWasm: bin, ErrNotReady: said}[want]; err != nil && !strings.Contains(err.Error(), where) {
			t.Errorf("%v: names no %s", err, where)
		}
	}
}
