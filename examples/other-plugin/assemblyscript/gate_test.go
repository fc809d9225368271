// Package gate tests a plugin written in AssemblyScript.
package gate

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// gate is how the tests load it. Its SDK finds the class by the root id.
var gate = hosttest.Options{Wasm: "gate.wasm", Build: "npm ci && npm run build", RootID: "gate", Config: "sesame"}

func TestTheKeyOpensTheGate(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: "gate.wasm", RootID: "gate", Config: "sesame"})
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

// A gateway that cannot tell the key keeps the gate shut, and a crash is one answer 503 and no more.
func TestFaults(t *testing.T) {
	o := gate
	o.AllowTraps = true
	o.Adjust = func(c *hostsim.Config) { c.FailurePolicy = hostsim.FailReload }
	h := hosttest.New(t, o)
	err := h.InjectFaults([]hostsim.Fault{
		{At: "env.proxy_get_header_map_value", Nth: 2, Answer: "INTERNAL_FAILURE"},
		{At: "proxy_on_request_headers", Nth: 3, Trap: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{200, 401, 503, 503, 200} {
		if i == 4 {
			h.Advance(hostsim.DefaultReloadBackoff)
		}
		got := h.Do(0, hosttest.Request{Headers: hosttest.Headers{{"x-api-key", "sesame"}}})
		if got.Status != want {
			t.Errorf("request %d: status %d, want %d", i+1, got.Status, want)
		}
	}
}

// What the plugin did once it does again, call for call and down to its memory.
func TestRecording(t *testing.T) {
	var recording bytes.Buffer
	o := gate
	o.Adjust = func(c *hostsim.Config) { c.Recorder = hostsim.NewRecorder(&recording, hostsim.RecordOptions{}) }
	h := hosttest.New(t, o)
	h.Do(0, hosttest.Request{Headers: hosttest.Headers{{"x-api-key", "sesame"}}})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile("gate.wasm")
	if err != nil {
		t.Fatal(err)
	}
	report, err := hostsim.Check(t.Context(), wasm, &recording)
	if err != nil || !report.SameModule || report.HostCalls == 0 {
		t.Errorf("report %+v, error %v", report, err)
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

// With an empty configuration the SDK reads out of bounds, in hostsim as in Envoy: a plugin on it needs one.
func TestEmptyConfigurationTraps(t *testing.T) {
	empty := gate
	empty.Config = ""
	_, err := hosttest.Start(t, empty)
	if !errors.Is(err, hostsim.ErrTrap) || !strings.Contains(err.Error(), "proxy_on_configure") {
		t.Errorf("error %v", err)
	}
}
