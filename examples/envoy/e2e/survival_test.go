package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// otherBuild writes a module that does what the shipped one does and has bytes that no gateway has seen: one more custom
// section.
func otherBuild(t *testing.T) (shipped, other string) {
	t.Helper()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	if shipped, err = envoytest.Wasm(root); err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	other = filepath.Join(t.TempDir(), "pinwheel-next.wasm")
	name := newID()
	section := append([]byte{0, byte(len(name) + 1), byte(len(name))}, name...)
	if err := os.WriteFile(other, append(code, section...), 0o644); err != nil {
		t.Fatal(err)
	}
	return shipped, other
}

// An update brings another build of the plugin, and the next one takes it back, while sessions are at work: turns, pins,
// a drain that was ordered and a running stream outlive both.
func TestPluginUpdateAndRollback(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		shipped, other := otherBuild(t)
		g.update(t, withAdmin)
		defer g.update(t, func(map[string]any) {})
		query := "?replica=" + g.replicas[2].Addr
		g.order(t, http.MethodPost, "/drain"+query, adminSecret, 200, &standing{})
		defer g.order(t, http.MethodPost, "/undrain"+query, adminSecret, 200, &standing{})
		homes := g.turns(t, newIDs(30), "placed")
		res := g.stream(t, t.Context(), newID(), "chunks=3&hold=1")
		if res == nil {
			t.FailNow()
		}
		defer res.Body.Close()
		stop := g.traffic(t, homes)
		for _, step := range []struct {
			name string
			by   func(envoytest.Bootstrap) (envoytest.Bootstrap, error)
			// New code gets a VM to try it in and one for each thread; code that a draining listener still runs, the first alone.
			created uint64
		}{{"update", inPlace(shipped, other), 4}, {"rollback", nil, 1}} {
			before := g.created(t)
			g.altered = step.by
			g.update(t, withAdmin)
			if n := g.created(t) - before; n < step.created {
				t.Errorf("%s: %d new VMs, want %d", step.name, n, step.created)
			}
			g.stay(t, homes)
			if s := g.standingOf(t, g.replicas[2].Addr); s.State != "draining" || !s.Drain {
				t.Errorf("after the %s the drained replica is %+v", step.name, s)
			}
			if got := g.spread(g.turns(t, newIDs(6), "placed")); got[2] != 0 {
				t.Errorf("after the %s %d new sessions went to the drained replica", step.name, got[2])
			}
		}
		if n, failed := stop(); n < 20 || len(failed) > 0 {
			t.Errorf("%d of %d turns failed, the first: %q", len(failed), n, failed[:min(3, len(failed))])
		}
		for _, r := range g.replicas {
			r.Release()
		}
		if r, err := read(res); err != nil || strings.Count(r.Body, "data:") != 3 {
			t.Errorf("the stream that lived through both: %q, %v", r.Body, err)
		}
	})
}

// created counts the virtual machines that Envoy has made.
func (g *gateway) created(t *testing.T) uint64 {
	return g.stats(t, `^wasm\.envoy\.wasm\.runtime\.v8\.created$`)["wasm.envoy.wasm.runtime.v8.created"]
}

// A running stream ends with the old listener's drain time: what an update cuts.
func TestDrainTimeCutsStreams(t *testing.T) {
	t.Parallel()
	eachRestartable(t, func(t *testing.T, e *restartable) {
		resources := filepath.Join(e.dir, "lds.yaml")
		rest, listener, err := e.text.SplitListeners(resources)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(resources, []byte(listener), 0o644); err != nil {
			t.Fatal(err)
		}
		e.text = rest
		e.run(t, "--drain-time-s", "2", "--disable-hot-restart")
		res, err := e.client.open(t.Context(), http.MethodPost, chatPath, strings.NewReader("{}"), "X-Session-ID", newID(), envoytest.DoHeader, "chunks=1&hold=1")
		if err != nil || res.StatusCode != 200 {
			t.Fatal(res, err)
		}
		defer res.Body.Close()
		next := strings.Replace(listener, `"debug_headers":true`, `"debug_headers":true,"target":{"spares":1}`, 1)
		if next == listener {
			t.Fatal("nothing to change in the listener")
		}
		if err := os.WriteFile(resources+".next", []byte(next), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(resources+".next", resources); err != nil {
			t.Fatal(err)
		}
		// The replica holds the answer for ever: that it ends is the gateway's doing.
		if text, err := io.ReadAll(res.Body); err == nil || !strings.HasPrefix(string(text), "data: 0") {
			t.Errorf("the stream: %q, %v; want one event and a cut", text, err)
		}
	})
}

// Pins, drains and running requests live in the process. A new one, with as many workers or others, places all sessions anew,
// evenly; so does one that takes over from its predecessor by Envoy's hot restart, which hands over sockets and statistics only.
func TestRestartForgetsPins(t *testing.T) {
	t.Parallel()
	eachRestartable(t, func(t *testing.T, e *restartable) {
		var err error
		if e.text, err = e.text.Plugin(withAdmin); err != nil {
			t.Fatal(err)
		}
		drain := "/drain?replica=" + e.replicas[0].Addr // which the next process does not know of either
		ids := newIDs(12)
		first := e.run(t, "--concurrency", "2", "--disable-hot-restart")
		e.allPlaced(t, "at first", ids)
		e.order(t, http.MethodPost, drain, adminSecret, 200, &standing{})
		running := e.stream(t, t.Context(), ids[0], "chunks=1&hold=1")
		if running == nil {
			t.FailNow()
		}
		defer running.Body.Close()
		first.stop()
		if text, err := io.ReadAll(running.Body); err == nil {
			t.Errorf("a request that ran during the restart ended well, with %q", text)
		}
		old := e.run(t, "--concurrency", "3", "--base-id", e.port, "--drain-time-s", "1") // a number no other Envoy has here
		e.allPlaced(t, "after a restart with another worker", ids)
		e.order(t, http.MethodPost, drain, adminSecret, 200, &standing{})
		e.run(t, "--base-id", e.port, "--restart-epoch", "1", "--drain-time-s", "1", "--parent-shutdown-time-s", "2")
		until(t, "the old process to hand over and end", func() (bool, string) { return !old.alive(), "alive" })
		e.allPlaced(t, "after the hot restart", ids)
		e.waitOpen(t, 4, 4, 4) // and not what the old process's gauges add to that
	})
}

// A configuration that the plugin refuses ends an Envoy that has the listener in its own file, and the log says why.
func TestBadConfigurationAtStart(t *testing.T) {
	t.Parallel()
	eachRestartable(t, func(t *testing.T, e *restartable) {
		var err error
		if e.text, err = e.text.Plugin(func(c map[string]any) { c["polcy"] = "random" }); err != nil {
			t.Fatal(err)
		}
		p, _ := e.start(t, "--disable-hot-restart")
		until(t, "Envoy to end", func() (bool, string) { return !p.alive(), p.log.Tail(3) })
		if said := p.log.Since(0); p.cmd.ProcessState.ExitCode() != 1 || !lineWith(said, []string{"configuration refused", "polcy"}) {
			t.Errorf("exit code %d, want 1; it said:\n%s", p.cmd.ProcessState.ExitCode(), tail(said, 8))
		}
	})
}

// restartable is an Envoy on the user's file that a test starts itself, several times.
type restartable struct {
	gateway
	bin, dir, port string
	text           envoytest.Bootstrap
}

func eachRestartable(t *testing.T, f func(*testing.T, *restartable)) {
	for _, v := range versions() {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			bin, err := wheel.Find(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			port, err := envoytest.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			e := &restartable{bin: bin, dir: t.TempDir(), port: strconv.Itoa(port)}
			t.Cleanup(func() { e.closeReplicas() })
			e.sessions = map[string]bool{}
			e.client = newClient("127.0.0.1:" + e.port)
			if e.text, err = e.adapt(userFile, port); err != nil {
				t.Fatal(err)
			}
			f(t, e)
		})
	}
}

// process is a running Envoy.
type process struct {
	cmd    *exec.Cmd
	log    *envoytest.Log
	exited chan struct{}
}

// start starts Envoy with these arguments, and names the file for its admin interface's address. It ends with the test.
func (e *restartable) start(t *testing.T, args ...string) (p *process, address string) {
	t.Helper()
	dir := t.TempDir()
	bootstrap, address := filepath.Join(dir, "envoy.yaml"), filepath.Join(dir, "admin")
	if err := os.WriteFile(bootstrap, []byte(e.text), 0o644); err != nil {
		t.Fatal(err)
	}
	p = &process{log: &envoytest.Log{}, exited: make(chan struct{})}
	p.cmd = exec.Command(e.bin, append([]string{"-c", bootstrap, "--admin-address-path", address, "-l", "info"}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := envoytest.RunTied(p.cmd, p.exited); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p, address
}

// run is start, until Envoy is ready.
func (e *restartable) run(t *testing.T, args ...string) *process {
	t.Helper()
	p, address := e.start(t, args...)
	until(t, "Envoy to be ready", func() (bool, string) {
		if !p.alive() {
			t.Fatalf("Envoy ended:\n%s", p.log.Tail(10))
		}
		addr, err := os.ReadFile(address)
		e.envoy = &envoytest.Envoy{Admin: envoytest.Admin{Addr: strings.TrimSpace(string(addr))}, Log: p.log}
		return err == nil && e.envoy.Admin.Ready(t.Context()), p.log.Tail(3)
	})
	return p
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) stop() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// allPlaced expects of sessions that this process has none of them, puts them evenly and keeps them.
func (e *restartable) allPlaced(t *testing.T, when string, ids []string) {
	t.Helper()
	e.client.http.CloseIdleConnections()
	homes := e.turns(t, ids, "placed")
	if got := e.spread(homes); got[0] != 4 || got[1] != 4 || got[2] != 4 {
		t.Errorf("%s: 12 sessions were placed %v", when, got)
	}
	for id, home := range e.turns(t, ids, "pinned") {
		if home != homes[id] {
			t.Errorf("%s: session %s moved", when, id)
		}
	}
}
