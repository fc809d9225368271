// Package istio holds the table of layouts to the code by which Istio's agent fetches a WasmPlugin's image.
package istio

import (
	"bytes"
	"os"
	"testing"
	"time"

	"istio.io/istio/pkg/wasm"

	"github.com/pinwheel-proxy/pinwheel/build/ship/layouts"
)

var module = append([]byte("\x00asm\x01\x00\x00\x00"), bytes.Repeat([]byte{0, 2, 1, 'x'}, 1000)...)

func TestLayouts(t *testing.T) {
	r, stop := layouts.Start(module)
	defer stop()
	for _, l := range layouts.All {
		reference, sha256 := l.Put(r)
		cache := wasm.NewLocalFileCache(t.TempDir(), wasm.Options{PurgeInterval: time.Hour}) // no layout answers for another
		file, err := cache.Get("oci://"+reference, wasm.GetOptions{Checksum: sha256, RequestTimeout: time.Minute})
		cache.Cleanup()
		if (err == nil) != (l.Says == "") || err != nil && !l.Said(err.Error()) {
			t.Errorf("%s: %v, want %q", l.Name, err, l.Says)
		} else if err != nil {
			t.Logf("%s: %q", l.Name, err)
		} else if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, module) {
			t.Errorf("%s: %v, %d bytes that are not the module", l.Name, err, len(got))
		}
	}
}
