// Package pinwheel holds the table of layouts to the code by which Envoy Gateway fetches an EnvoyExtensionPolicy's image.
package pinwheel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/internal/logging"
	"github.com/envoyproxy/gateway/internal/wasm"
	"github.com/pinwheel-proxy/pinwheel/build/ship/layouts"
)

var module = append([]byte("\x00asm\x01\x00\x00\x00"), bytes.Repeat([]byte{0, 2, 1, 'x'}, 1000)...)

func TestLayouts(t *testing.T) {
	r, stop := layouts.Start(module)
	defer stop()
	sum := sha256.Sum256(module)
	for _, l := range layouts.All {
		reference, want := l.Put(r)
		options := wasm.CacheOptions{CacheDir: t.TempDir(), InsecureRegistries: sets.New("*")} // no layout answers for another
		cache := wasm.NewHTTPServerWithFileCache(wasm.ServerOptions{Salt: []byte("salt")}, options, "system", logging.DefaultLogger(io.Discard, egv1a1.LogLevelError))
		_, checksum, err := cache.Get("oci://"+reference, &wasm.GetOptions{Checksum: want, ResourceName: "policy"})
		if (err == nil) != (l.Says == "") || err != nil && !l.Said(err.Error()) {
			t.Errorf("%s: %v, want %q", l.Name, err, l.Says)
		} else if err != nil {
			t.Logf("%s: %q", l.Name, err)
		} else if checksum != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: a file of sha256 %s, which is not the module's", l.Name, checksum)
		}
	}
}
