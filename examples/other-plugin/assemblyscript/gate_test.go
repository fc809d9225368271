// Package gate tests a plugin written in AssemblyScript.
package gate

import (
	"errors"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// gate is how the tests load it. Its SDK finds the class by the root id.
var gate = hosttest.Options{Wasm: "gate.wasm", Build: "npm ci && npm run build", RootID: "gate", Config: "sesame"}

func TestTheKeyOpensTheGate(t *testing.T) {
	h := hosttest.New(t, gate)
	got := h.Do(0, hosttest.Request{Path: "/in", Headers: hosttest.Headers{{"x-api-key", "sesame"}}})
	if got.Status != 200 || got.Request.Value("x-api-key") != "" {
		t.Errorf("status %d, upstream got %v", got.Status, got.Request)
	}
}

func TestWithoutTheKey(t *testing.T) {
	h := hosttest.New(t, gate)
	for _, headers := range []hosttest.Headers{nil, {{"x-api-key", "open"}}} {
		got := h.Do(0, hosttest.Request{Headers: headers})
		if got.Status != 401 || got.ResponseBody != "no key, no entry\n" || got.Request != nil {
			t.Errorf("with %v: %+v", headers, got)
		}
	}
	if n := h.Metric("gate_refused_total"); n != 2 {
		t.Errorf("%d refused", n)
	}
}

// Every gateway that hostsim knows would load it.
func TestProfiles(t *testing.T) {
	for _, p := range hostsim.Profiles() {
		o := gate
		o.Profile = p.Name
		if got := hosttest.New(t, o).Do(0, hosttest.Request{}); got.Status != 401 {
			t.Errorf("%s: status %d", p.Name, got.Status)
		}
	}
}

// The SDK reads an empty configuration out of bounds, in hostsim as in Envoy: a plugin on it needs one.
func TestEmptyConfigurationTraps(t *testing.T) {
	empty := gate
	empty.Config = ""
	_, err := hosttest.Start(t, empty)
	if !errors.Is(err, hostsim.ErrTrap) || !strings.Contains(err.Error(), "proxy_on_configure") {
		t.Errorf("error %v", err)
	}
}
