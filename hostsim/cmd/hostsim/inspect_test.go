package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// The table lists an import once, says whom it keeps from loading the module, and ends with the verdicts, one missing name
// a line.
func TestInspectTable(t *testing.T) {
	one := hostsim.Signature{Params: []string{"i32"}, Results: []string{"i32"}}
	none := hostsim.Signature{}
	r := &hostsim.Report{
		Size: 3 << 20, ABI: "0.2.1", MemoryMin: 65536, MemoryMax: 131072,
		Imports: []hostsim.Import{
			{Module: "env", Name: "proxy_log", Signature: one}, {Module: "env", Name: "odd", Signature: one},
			{Module: "env", Name: "proxy_log", Signature: one}, {Module: "env", Name: "odder", Signature: one},
		},
		Exports: []hostsim.Export{{Name: "proxy_abi_version_0_2_1", Signature: none}, {Name: "proxy_on_tick", Signature: none, Callback: true}, {Name: "z", Signature: none}},
		Verdicts: []hostsim.Verdict{{Profile: "new", Loads: true}, {Profile: "older", Missing: []string{"env.odd", "env.odder as () -> () (it is (i32) -> (i32))"}},
			{Profile: "old", Missing: []string{"env.odd"}}},
	}
	var out bytes.Buffer
	if err := printReport(&out, "a.wasm", r); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimPrefix(`
file    a.wasm
size    3145728 bytes (3.0 MiB)
abi     0.2.1
memory  from 65536 bytes to 131072 bytes

3 imports
  env.proxy_log  (i32) -> (i32)
  env.odd        (i32) -> (i32)  keeps it out of older, old
  env.odder      (i32) -> (i32)  keeps it out of older

3 exports
  proxy_abi_version_0_2_1  () -> ()  says which ABI it is
  proxy_on_tick            () -> ()
  z                        () -> ()  not called by a gateway

profiles
  new    loads
  older  refuses it because of  env.odd
                                env.odder as () -> () (it is (i32) -> (i32))
  old    refuses it because of  env.odd
`, "\n")
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
