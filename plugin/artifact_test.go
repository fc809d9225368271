package plugin

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// proxy-wasm/proxy-wasm-cpp-host#533: official Go asked for imports that the
// gateway lacked. build/wasmcheck reads the module's lists; here each profile
// starts it, ticks and serves.
func TestShippedModuleRunsUnderEveryProfile(t *testing.T) {
	for _, p := range hostsim.Profiles() {
		g := startWith(t, hosttest.Options{Workers: 2, Profile: p.Name}, twoReplicas)
		for range 50 {
			g.turn("s")
			g.turn("")
		}
		g.Advance(90 * tick)
		g.mustServe()
		for name, n := range g.Counters().Unimplemented {
			t.Errorf("%s: %d calls of %s, which the host lacks", p.Name, n, name)
		}
	}
}
