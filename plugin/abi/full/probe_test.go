package full

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// build makes a module with the commands that users are told, and returns it or what
// the toolchain says.
func build(t *testing.T, folder string) ([]byte, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "plugin.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, folder)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, string(text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm, ""
}

// probe is the module of testdata/probe in a host.
type probe struct {
	*hostsim.Host
	t    *testing.T
	seen int
}

func start(t *testing.T, wasm []byte, kind, cache string) *probe {
	t.Helper()
	h, err := hostsim.New(t.Context(), hostsim.Config{Wasm: wasm, PluginConfig: []byte(kind), VMConfig: []byte("vm"), CacheDir: cache,
		HTTPCall: func(c *hostsim.HTTPCall) bool {
			c.Respond(hostsim.HTTPResponse{Headers: hostsim.Headers{{":status", "200"}}, Body: []byte("to " + string(c.Body)),
				Trailers: hostsim.Headers{{"x-end", "1"}}})
			return true
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return &probe{Host: h, t: t}
}

// heard compares what the worker has logged since the last time with want.
func (p *probe) heard(when, want string) {
	p.t.Helper()
	var got []string
	logs := p.Logs()
	for _, e := range logs[p.seen:] {
		if e.Worker == 0 {
			got = append(got, strings.Split(e.Message, "\n")[0])
		}
	}
	p.seen = len(logs)
	if text := strings.ReplaceAll(strings.TrimSpace(want), "\t", ""); strings.Join(got, "\n") != text {
		p.t.Errorf("%s: got\n%s\nwant\n%s", when, strings.Join(got, "\n"), text)
	}
}

func (p *probe) ok(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestProbe(t *testing.T) {
	wasm, failure := build(t, "./testdata/probe")
	if wasm == nil {
		t.Fatal(failure)
	}
	cache := t.TempDir() // compiled once
	http, tcp := start(t, wasm, "http", cache), start(t, wasm, "tcp", cache)
	for kind, p := range map[string]*probe{"http": http, "tcp": tcp} {
		p.heard("at start", fmt.Sprintf(`main
			vm_start [2 vm <nil>]
			configure [%d %s <nil>]
			tick period [<nil>]
			register queue [<nil>]`, len(kind), kind))
	}
	exchange(http)
	pluginCalls(http)
	connection(tcp)
	reply(http)
	reconfigure(http)
	covered := http.Coverage()
	covered.Merge(tcp.Coverage())
	for _, c := range covered.Callbacks {
		if c.Calls == 0 {
			t.Errorf("%s was not called", c.Name)
		}
	}
	for _, c := range covered.HostCalls {
		if c.Calls == 0 && strings.HasPrefix(c.Name, "env.") {
			t.Errorf("%s was not called", c.Name)
		}
	}
	if callbacks := directives(parse(t, ".", "*.go"), "//go:wasmexport"); len(covered.Callbacks) < len(callbacks) {
		t.Errorf("%d callbacks in the module, want the %d of the package and _initialize", len(covered.Callbacks), len(callbacks))
	}
	panics(http)
}

// A module has one binding.
func TestBothBindingsAreRefused(t *testing.T) {
	wasm, failure := build(t, "./testdata/both")
	if wasm != nil || !strings.Contains(failure, "plugin/abi ") || !strings.Contains(failure, "plugin/abi/full ") {
		t.Errorf("the build gives %d bytes and says %q", len(wasm), failure)
	}
}
