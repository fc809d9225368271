// Command wasmcheck holds the plugin's binary to what gateways can load and to
// what Pinwheel means to ship. A build that binds nothing is green to the
// compiler: only a look at the binary tells.
//
//	go run ./build/wasmcheck dist/pinwheel.wasm
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// exports are the callbacks that Pinwheel uses, and no others: an exported
// proxy_on_response_body, say, would call the VM for every chunk of a stream.
var exports = []string{
	"_initialize", "proxy_abi_version_0_2_1", "proxy_on_configure", "proxy_on_context_create",
	"proxy_on_delete", "proxy_on_http_call_response", "proxy_on_memory_allocate", "proxy_on_request_body",
	"proxy_on_request_headers", "proxy_on_request_trailers", "proxy_on_response_headers", "proxy_on_tick",
	"proxy_on_vm_start",
}

// hostCalls are the host functions that Pinwheel uses.
var hostCalls = []string{
	"proxy_continue_stream", "proxy_define_metric", "proxy_get_buffer_bytes", "proxy_get_header_map_pairs", "proxy_get_metric",
	"proxy_get_property", "proxy_get_shared_data", "proxy_http_call", "proxy_increment_metric", "proxy_log", "proxy_record_metric",
	"proxy_remove_header_map_value", "proxy_replace_header_map_value", "proxy_send_local_response",
	"proxy_set_effective_context", "proxy_set_shared_data", "proxy_set_tick_period_milliseconds",
}

// sizeBudget bounds the binary, in bytes: gateways compile all of it before they
// are ready, about 0.6 s a megabyte. build/wasmsize tells what has grown.
const sizeBudget = 3_720_000

// profiles are the gateways that must load the binary.
var profiles = []string{"envoy-1.36", "envoy-1.40"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: wasmcheck FILE.wasm")
		os.Exit(2)
	}
	wasm, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "wasmcheck: %v; build it with: make wasm\n", err)
		os.Exit(2)
	}
	findings, err := check(wasm)
	if err != nil {
		fmt.Fprintf(os.Stderr, "wasmcheck: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	failed := false
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		verdict := "ok"
		if f.wrong != "" {
			verdict, failed = "WRONG: "+f.wrong, true
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.what, f.is, verdict)
	}
	_ = table.Flush()
	if failed {
		os.Exit(1)
	}
}

// finding is one property of the binary; wrong is empty if it is as it should be.
type finding struct{ what, is, wrong string }

func check(wasm []byte) ([]finding, error) {
	r, err := hostsim.Inspect(wasm)
	if err != nil {
		return nil, err
	}
	var exported, called []string
	for _, e := range r.Exports {
		exported = append(exported, e.Name)
	}
	for _, i := range r.Imports {
		if i.Module == "env" {
			called = append(called, i.Name)
		}
	}
	findings := []finding{
		{"ABI", r.ABI, unless(r.ABI == "0.2.1", "want 0.2.1")},
		{"size", fmt.Sprintf("%d bytes", r.Size), unless(r.Size <= sizeBudget, fmt.Sprintf("the budget is %d", sizeBudget))},
		{"exports", fmt.Sprintf("%d functions", len(exported)), difference(exported, exports)},
		{"host calls", fmt.Sprintf("%d functions", len(called)), difference(called, hostCalls)},
		{"paths", "of the building machine", leak(wasm, foldersHere())},
	}
	for _, v := range r.Verdicts {
		if slices.Contains(profiles, v.Profile) {
			findings = append(findings, finding{"loads in", v.Profile, unless(v.Loads, "lacks "+strings.Join(v.Missing, ", "))})
		}
	}
	return findings, nil
}

func unless(ok bool, wrong string) string {
	if ok {
		return ""
	}
	return wrong
}

// difference names what is in one list only.
func difference(got, want []string) string {
	var wrong []string
	for _, g := range got {
		if !slices.Contains(want, g) {
			wrong = append(wrong, g+" too many")
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			wrong = append(wrong, w+" missing")
		}
	}
	return strings.Join(wrong, ", ")
}
