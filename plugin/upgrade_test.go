package plugin

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// A gateway that gets the module of another release keeps every pin, and says which release it runs.
func TestPinsSurviveAnUpgrade(t *testing.T) {
	const config = threeReplicas + `,"admin":{}`
	newer := filepath.Join(t.TempDir(), "newer.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared",
		"-ldflags=-s -w -buildid= -X github.com/pinwheel-proxy/pinwheel/build/version.Number=9.8.7", "-o", newer, "./wasm")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wasm, err := os.ReadFile(newer)
	if err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, 2, config)
	if got := g.status("").Versions["pinwheel"]; got != "dev" {
		t.Errorf("version %v, want dev", got)
	}
	homes := map[string]string{}
	for i := range 30 {
		homes[fmt.Sprint("s", i)] = g.turn(fmt.Sprint("s", i)).replica
	}
	running := g.begin(0, "s1")
	if err := g.Update(t.Context(), hostsim.Update{Wasm: wasm, PluginConfig: []byte(`{"debug_headers":true,` + config + `}`)}); err != nil {
		t.Fatal(err)
	}
	g.Advance(2 * tick)
	if got := g.status("").Versions["pinwheel"]; got != "9.8.7" {
		t.Errorf("version %v, want 9.8.7", got)
	}
	for id, home := range homes {
		if r := g.turn(id); r.reason != "pinned" || r.replica != home {
			t.Errorf("%s is %s on %s, want pinned on %s", id, r.reason, r.replica, home)
		}
	}
	if got := replicaOf(running); got != homes["s1"] {
		t.Errorf("a running turn went to %s, not to %s", got, homes["s1"])
	}
	g.end(running, hostsim.EndNormal)
	g.Drain()
	g.Advance(3 * tick)
	if n := g.sessions("default"); n != 30 {
		t.Errorf("%d sessions open, want 30", n)
	}
}
