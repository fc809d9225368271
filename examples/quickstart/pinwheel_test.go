package quickstart

import (
	"path/filepath"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/suite"
)

// What pinwheel.yaml says of Pinwheel is so.
func TestPinwheelYAML(t *testing.T) {
	s, err := suite.Load("pinwheel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	results, err := s.Run(t.Context(), suite.Options{Wasm: filepath.Join(root, "dist/pinwheel.wasm")})
	if err != nil {
		t.Fatalf("%v (`make wasm` builds it)", err)
	}
	if len(results) < 9 {
		t.Errorf("%d results", len(results))
	}
	for _, r := range results {
		for _, p := range r.Problems {
			t.Errorf("%s: %s\n%s", r.Name, p, p.Diff)
		}
	}
}
