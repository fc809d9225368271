package plugin

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// proxy-wasm/proxy-wasm-cpp-host#533: official Go asked for imports that the
// gateway lacked. Each exported callback is a call into the VM for every stream,
// or for every chunk of a body: the list is what we need and no more.
func TestShippedModulesExportsAndImports(t *testing.T) {
	wasm, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatalf("%v; build it with: make wasm", err)
	}
	report, err := hostsim.Inspect(wasm)
	if err != nil {
		t.Fatal(err)
	}
	var exports []string
	for _, e := range report.Exports {
		exports = append(exports, e.Name)
	}
	if want := []string{
		"_initialize", "proxy_abi_version_0_2_1", "proxy_on_configure", "proxy_on_context_create", "proxy_on_delete", "proxy_on_log",
		"proxy_on_memory_allocate", "proxy_on_request_headers", "proxy_on_response_headers", "proxy_on_tick", "proxy_on_vm_start",
	}; !slices.Equal(exports, want) {
		t.Errorf("exports %q, want %q", exports, want)
	}
	if report.ABI != "0.2.1" || report.MemoryMin == 0 {
		t.Errorf("ABI %q, memory of %d bytes", report.ABI, report.MemoryMin)
	}
	var imports []string
	for _, i := range report.Imports {
		if i.Module == "env" {
			imports = append(imports, i.Name)
		} else if !slices.Contains(hostsim.Envoy136().WASI, i.Name) {
			t.Errorf("imports %s.%s, which Envoy 1.36 lacks", i.Module, i.Name)
		}
	}
	slices.Sort(imports)
	if want := []string{
		"proxy_define_metric", "proxy_get_buffer_bytes", "proxy_get_header_map_value", "proxy_get_metric", "proxy_get_property",
		"proxy_get_shared_data", "proxy_increment_metric", "proxy_log", "proxy_remove_header_map_value",
		"proxy_replace_header_map_value", "proxy_send_local_response", "proxy_set_shared_data",
		"proxy_set_tick_period_milliseconds",
	}; !slices.Equal(imports, want) {
		t.Errorf("imports %q, want %q", imports, want)
	}
	for _, v := range report.Verdicts {
		if !v.Loads {
			t.Errorf("does not load under %s: %s", v.Profile, strings.Join(v.Missing, ", "))
		}
	}
}

// What Inspect says, by running it: each profile starts, ticks and serves.
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
