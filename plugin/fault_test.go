package plugin

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// buildModule builds the plugin with build tags and returns the file.
func buildModule(t *testing.T, tags string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pinwheel.wasm")
	cmd := exec.Command("go", "build", "-tags", tags, "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-o", file, "./wasm")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// panicIn makes a callback of a module that is built with the tag pinwheel_inject
// panic; "" none.
func (g *gateway) panicIn(callback string) {
	g.SharedData().Set("pinwheel_inject", []byte(callback), 0)
}

// panicLines are the log lines about panics.
func (g *gateway) panicLines() (lines []hostsim.LogEntry) {
	for _, e := range g.Logs() {
		if strings.Contains(e.Message, "panicked") {
			lines = append(lines, e)
		}
	}
	return lines
}

// Kuadrant/wasm-shim#139: after one panic the worker failed every later request.
func TestAPanicInAnyCallback(t *testing.T) {
	wasm := buildModule(t, "pinwheel_inject")
	for callback, c := range map[string]struct {
		routed  bool // the request in which it panics still reaches its replica
		threads int  // that run the callback: the log has one line of each
	}{
		"proxy_on_context_create":   {false, 2},
		"proxy_on_request_headers":  {false, 2},
		"proxy_on_response_headers": {true, 2},
		"proxy_on_delete":           {true, 2},
		"proxy_on_tick":             {true, 3},
	} {
		t.Run(callback, func(t *testing.T) {
			g := startModule(t, wasm, 2, twoReplicas)
			home := g.turn("s").replica
			g.panicIn(callback)
			for i := range 200 {
				for _, id := range []string{"s", "", "new"} {
					r := g.Do(i%2, turnOf(id, [2]string{targetHeader, "127.0.0.1:9901"}))
					target := r.Request.Value(targetHeader)
					if r.Status != 200 || (target != "") != c.routed || strings.Contains(target, "127.0.0.1") {
						t.Fatalf("request %d of %q: status %d, target %q", i, id, r.Status, target)
					}
				}
			}
			g.Advance(2 * tick)
			g.panicIn("")
			for w := range g.Workers() {
				if err := g.Worker(w).Err(); err != nil {
					t.Fatal(err)
				}
				if r := g.on(w, turnOf("s")); r.Status != 200 || r.reason != "pinned" || r.replica != home {
					t.Errorf("worker %d afterwards: %d %s on %s, want pinned on %s", w, r.Status, r.reason, r.replica, home)
				}
			}
			g.mustServe()
			g.Advance(2 * tick)
			if n := g.Metric("pinwheel_errors_total.kind.panic"); n < int64(c.threads) {
				t.Errorf("%d panics counted", n)
			}
			lines := g.panicLines()
			if len(lines) != c.threads {
				t.Errorf("%d lines of %d VMs in some seconds, want one each: %v", len(lines), c.threads, lines)
			}
			for _, l := range lines {
				if l.Level != hostsim.LogCritical || !strings.Contains(l.Message, callback+" panicked") || !strings.Contains(l.Message, "injected at ") {
					t.Errorf("log line %q", l.Message)
				}
			}
			g.panicIn(callback)
			g.Advance(61 * tick)
			g.Do(0, turnOf("s"))
			if n := len(g.panicLines()); n <= len(lines) {
				t.Errorf("nothing logged a minute later")
			}
		})
	}

	// A request that waits for its body goes on, and is waited for no more.
	for _, callback := range []string{"proxy_on_request_body", "proxy_on_request_trailers"} {
		t.Run(callback, func(t *testing.T) {
			g := startWith(t, hosttest.Options{Wasm: wasm, Adjust: func(c *hostsim.Config) {
				c.LogLevel, c.AllowOnHeadersStopIteration = hostsim.LogInfo, true
			}}, readingBodies)
			home := g.do(chat(`{"user":"s"}`)).replica
			g.panicIn(callback)
			for range 100 {
				s := g.pausedChat(0, [2]string{targetHeader, "127.0.0.1:9901"}).chunk(`{"messages":[`, false)
				if callback == "proxy_on_request_trailers" {
					if _, err := s.RequestTrailers(hostsim.Headers{{"a", "b"}}); err != nil {
						t.Fatal(err)
					}
				} else if s.step.Flow != hostsim.Forward || !s.step.Headers {
					t.Fatalf("the request waits: %+v", s.step)
				}
				if got := s.Headers(hostsim.MapRequestHeaders).Value(targetHeader); got != "" {
					t.Fatalf("target %q", got)
				}
				g.end(s.Stream, hostsim.EndNormal)
			}
			g.panicIn("")
			if r := g.do(chat(`{"user":"s"}`)); r.reason != "pinned" || r.replica != home {
				t.Errorf("afterwards: %s on %s, want pinned on %s", r.reason, r.replica, home)
			}
			g.Advance(3 * tick)
			g.mustServe()
			if n := g.errors(faultBodyLate); n != 0 {
				t.Errorf("%d requests that had gone on were resumed", n)
			}
		})
	}

	// In the callbacks of a start a panic refuses the configuration.
	for _, callback := range []string{"proxy_on_vm_start", "proxy_on_configure", "proxy_on_context_create"} {
		t.Run(callback+" of an update", func(t *testing.T) {
			g := startModule(t, wasm, 2, twoReplicas)
			home := g.turn("s").replica
			g.panicIn(callback)
			if err := g.reconfigure(threeReplicas); !errors.Is(err, hostsim.ErrRefused) {
				t.Errorf("%v, want it refused", err)
			}
			g.panicIn("")
			for w := range g.Workers() {
				if r := g.on(w, turnOf("s")); r.reason != "pinned" || r.replica != home {
					t.Errorf("worker %d afterwards: %s on %s, want pinned on %s", w, r.reason, r.replica, home)
				}
			}
			g.Advance(2 * tick)
			g.mustServe()
			if n := len(g.record("default").List); n != 2 {
				t.Errorf("%d replicas, want the old configuration's 2", n)
			}
			if err := g.reconfigure(threeReplicas); err != nil {
				t.Errorf("the next configuration: %v", err)
			}
		})
	}

	// A panic in a release is no reason to forward it to a replica with the
	// client's own choice of host.
	t.Run("release", func(t *testing.T) {
		g := startModule(t, wasm, 2, twoReplicas)
		g.panicIn("proxy_on_request_headers")
		r := g.Do(0, post("/finish_session?session_id=s", [2]string{targetHeader, "127.0.0.1:9901"}))
		if r.Status != 200 || r.Request.Value(targetHeader) != "" {
			t.Errorf("status %d, target %q", r.Status, r.Request.Value(targetHeader))
		}
	})

	// The header of every configuration that this VM has seen is taken out.
	t.Run("another target header", func(t *testing.T) {
		g := startModule(t, wasm, 2, twoReplicas)
		if err := g.reconfigure(twoReplicas + `,"target":{"header":"x-host"}`); err != nil {
			t.Fatal(err)
		}
		g.panicIn("proxy_on_request_headers")
		r := g.Do(0, turnOf("s", [2]string{targetHeader, "127.0.0.1:9901"}, [2]string{"x-host", "127.0.0.1:9901"}))
		if r.Request.Value("x-host") != "" || r.Request.Value(targetHeader) != "" {
			t.Errorf("the client's choice is left standing: %v", r.Request)
		}
	})
}

// The module that users load has no way to be made to panic.
func TestTheShippedModuleInjectsNothing(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	g.panicIn("proxy_on_request_headers")
	if r := g.turn("s"); r.reason != "placed" {
		t.Errorf("reason %s", r.reason)
	}
}

// A VM that traps all the same takes nobody else's sessions with it, and its own
// come back with its replacement; and so if all of them trap (haproxy/haproxy#842).
func TestATrapLosesNoPin(t *testing.T) {
	g := startWith(t, hosttest.Options{Workers: 2, AllowTraps: true, Adjust: func(c *hostsim.Config) {
		c.FailurePolicy = hostsim.FailReload
	}}, threeReplicas)
	homes := map[string]string{}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		homes[id] = g.turn(id).replica
	}
	for _, crashed := range [][]int{{0}, {0}, {1}, {0, 1}} {
		for _, w := range crashed {
			g.crash(g.Worker(w), func() { g.Do(w, turnOf("a")) })
			if r := g.Do(w, turnOf("a")); r.Status != 503 {
				t.Errorf("status %d before the reload", r.Status)
			}
		}
		g.Advance(2 * tick)
		for id, home := range homes {
			for w := range g.Workers() {
				if r := g.on(w, turnOf(id)); r.Status != 200 || r.reason != "pinned" || r.replica != home {
					t.Errorf("%s on worker %d: %d %s on %s, want pinned on %s", id, w, r.Status, r.reason, r.replica, home)
				}
			}
		}
	}
	g.mustOpen(2, 2, 2)
}

// Kuadrant/wasm-shim#139, the other half: any host call may fail, in any way, or say
// that it went well and answer nothing. No request is refused for that, whatever it
// holds, and when the call works again the same VM serves.
func TestAnyHostCallMayFail(t *testing.T) {
	statuses := []hostsim.Status{hostsim.StatusNotFound, hostsim.StatusBadArgument, hostsim.StatusInternalFailure, hostsim.StatusResultMismatch, hostsim.StatusOK}
	requests := []hosttest.Request{
		turnOf("s", [2]string{targetHeader, "127.0.0.1:9901"}), turnOf("new"), {}, turnOf(strings.Repeat("x", 300)),
		chat(`{"user":"s"}`), chat(`{"us`, "\xff\x00", `er":{{"`), asks("p", text(1, 3000)),
		post("/finish_session?session_id=s"), {Method: "GET", Path: "/pinwheel/status"},
		{Path: "/\xff?%", Headers: hostsim.Headers{{"x-session-id", "\xc0\xa7"}, {"\xff", strings.Repeat("\xfe", 70_000)}}},
	}
	g := startReading(t, 2, true, readingBodies+named("cache_aware")+`,"admin":{}`)
	g.turn("s")
	g.Advance(2 * tick)
	for _, r := range requests {
		g.Do(0, r)
	}
	for name, n := range g.Counters().HostCalls {
		if n == 0 || !strings.HasPrefix(name, "env.") {
			continue
		}
		for _, status := range statuses {
			failed := false
			g.OnHostCall(func(_ int, called string) (hostsim.Status, bool) {
				failed = failed || called == name
				return status, called == name
			})
			for i, r := range requests {
				got := g.Do(0, r)
				// An operator is told that shared data does not answer. Of an answer that the
				// gateway will not send nothing is left to tell.
				hangs := got.Hangs && !strings.HasSuffix(name, "_local_response") && !strings.HasSuffix(name, "_continue_stream")
				if got.Err != nil || got.Status >= 500 && got.Local == nil || hangs {
					t.Errorf("%s answers %v: request %d: status %d, hangs %v, %v", name, status, i, got.Status, got.Hangs, got.Err)
				}
				if target := got.Request.Value(targetHeader); strings.Contains(target, "127.0.0.1") && !strings.HasSuffix(name, "_header_map_value") {
					t.Errorf("%s answers %v: the client's choice of host stands: %q", name, status, target)
				}
			}
			g.Advance(2 * tick)
			g.OnHostCall(nil)
			if atStart := strings.HasSuffix(name, "_tick_period_milliseconds") || strings.HasSuffix(name, "_define_metric") || strings.HasSuffix(name, "_log"); !failed && !atStart {
				t.Errorf("%s was not called", name)
			}
			if err := g.Worker(0).Err(); err != nil {
				t.Fatalf("%s answers %v: %v", name, status, err)
			}
			g.release("clean")
			home := g.on(0, turnOf("clean"))
			if r := g.on(0, turnOf("clean")); home.Status != 200 || r.reason != "pinned" || r.replica != home.replica {
				t.Errorf("%s answered %v: afterwards %d %s, then %s on %s", name, status, home.Status, home.reason, r.reason, r.replica)
			}
		}
	}
}
