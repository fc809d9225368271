//go:build !wasip1

package full

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// A plugin as one finds it.
const tinyGoPlugin = `package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

type vm struct{ types.DefaultVMContext }
type plugin struct{ types.DefaultPluginContext }

func (*vm) NewPluginContext(uint32) types.PluginContext   { return &plugin{} }
func (*plugin) NewHttpContext(uint32) types.HttpContext   { return &types.DefaultHttpContext{} }

func main() { proxywasm.SetVMContext(&vm{}) }
`

// The page's commands run as printed, in a folder with such a plugin, on this checkout.
func TestMoveOffTinyGo(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, root, "docs/move-off-tinygo.md")
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("main.go", tinyGoPlugin)
	write("go.mod", "module example.com/plugin\n\ngo 1.26\n\nreplace github.com/pinwheel-proxy/pinwheel => "+root+"\n")
	write("go.sum", read(t, root, "go.sum"))
	for _, m := range envoytest.Blocks(page, "go") {
		write("plugin_test.go", m)
	}
	blocks := envoytest.Blocks(page, "sh")
	script := strings.NewReplacer("pinwheel@latest", "pinwheel@v0.0.0",
		"go install github.com/pinwheel-proxy/pinwheel/hostsim/cmd/hostsim@latest", "go build -C "+root+" -o "+dir+"/hostsim ./hostsim/cmd/hostsim",
	).Replace(strings.Join(blocks, ""))
	if len(blocks) != 3 || strings.Contains(script, "@latest") {
		t.Fatalf("%d blocks of commands:\n%s", len(blocks), script)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GOFLAGS=-buildvcs=false")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the page's commands: %v\n%s", err, out)
	}
	for _, want := range []string{"envoy-1.40  loads\n", "envoy-1.36  loads\n", "ok  \texample.com/plugin"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the page's commands print\n%s\nwant %q in it", out, want)
		}
	}
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
