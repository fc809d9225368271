package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// What V8 and Callgrind write is put together: an instruction counts for the function that its address is in, and what was
// called, for none but itself.
func TestCountsByFunction(t *testing.T) {
	functions, err := readMap(write(t, "perf.map", `1000 40 Builtin:WasmCompileLazy
2040 20 JS:plugin.find-12-turbofan
2000 40 JS:github.com_pinwheel_proxy_pinwheel_plugin.__turn_.route-7-turbofan
3000 40 JS:*script turns.mjs:1:1
`))
	if err != nil {
		t.Fatal(err)
	}
	few, err := readCounts(write(t, "few", `events: Ir
fn=0x2000
0x2000 10
0x2041 4
`), functions)
	if err != nil {
		t.Fatal(err)
	}
	many, err := readCounts(write(t, "many", `events: Ir
fn=0x2000
0x2000 100
0x203f 10
cfn=0x2040
calls=3 0x2040
0x2010 999
0x2040 20
0x205f 4
0x2060 7
0x1000 7
`), functions)
	if err != nil {
		t.Fatal(err)
	}
	want := []cost{{"github.com_pinwheel_proxy_pinwheel_plugin.__turn_.route", 10}, {"plugin.find", 2}}
	if got := perTurn(few, many, 10); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := short(want[0].name); got != "plugin.__turn_.route" {
		t.Error(got)
	}
}

// The turns run, and the plugin names a replica in them. Needs Node, and `make wasm`.
func TestTurns(t *testing.T) {
	out, err := exec.Command("node", "turns.mjs", "../../dist/pinwheel.wasm", "10").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
