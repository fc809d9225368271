// Package e2e runs the shipped plugin in real Envoys under the configuration
// that examples/envoy shows to users.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// patience bounds every wait for something that Envoy or the plugin does later: metrics follow at the plugin's tick of one
// second, a configuration when the wasm is compiled, seconds of CPU; both on an idle machine, and tests run on a busy one.
const patience = 5 * time.Minute

// gateway is one Envoy with three replicas, or more. Tests take turns with it,
// because a start compiles the wasm for seconds; every test leaves it without
// sessions.
type gateway struct {
	name     string // kind and version
	envoy    *envoytest.Envoy
	replicas []*envoytest.Replica
	addr     string // of the listener
	client   *client

	discovery *discovery // of gateways of that kind
	endpoints string     // the file of the cluster's endpoints, in gateways that have one

	// altered is what updates change beside the plugin's configuration; nil: nothing.
	altered func(envoytest.Bootstrap) (envoytest.Bootstrap, error)

	// Only in gateways with listeners in a file:
	verbatim  bool                                            // configurations keep their text
	serial    int                                             // of the configuration, as /config-serial tells
	resources string                                          // that file
	render    func(edit func(map[string]any)) (string, error) // its text, plugin configuration edited

	crashes    bool         // its tests crash the plugin
	complaints atomic.Int32 // of the running test
	settled    bool         // nothing is open or in flight: the last test ended well

	mu       sync.Mutex
	sessions map[string]bool // opened and not released by the running test
}

// kind of a gateway's configuration.
type kind string

const (
	// userFile is envoy.yaml as users copy it; only ports and the wasm's path differ.
	userFile kind = "envoy.yaml"
	// updatable is the same with the listener, and the cluster's endpoints, in files
	// of their own (LDS, EDS), and with offPath, where the plugin does not run.
	updatable kind = "override_host, from files"
	// fleet is updatable with eight replicas in the cluster, the first four of them
	// in the plugin's configuration.
	fleet kind = "file-based LDS, eight replicas"
	// crashing is updatable with a plugin that a request can crash.
	crashing kind = "file-based LDS, a plugin that crashes on demand"
	// bareDoor is updatable without the early strip of the target header.
	bareDoor kind = "no early strip"
	// readsBodies is userFile with session.body and the flag that it needs, noFlag
	// without that flag, and tightBuffers with less buffer than is read of a body.
	readsBodies  kind = "session.body"
	noFlag       kind = "session.body without the flag"
	tightBuffers kind = "session.body, 32 KiB of buffer"
	// readsPrompts is userFile with the policy cache_aware and that flag.
	readsPrompts kind = "cache_aware"
	// discovered is discovery.yaml as users copy it.
	discovered kind = "discovery.yaml"

	// The choice takes other ways to the load balancer; else as updatable.
	statefulSession kind = "stateful_session"
	originalDst     kind = "ORIGINAL_DST"
	// defaultStatus is statefulSession without its word on DRAINING hosts.
	defaultStatus kind = "stateful_session, Envoy's override_host_status"

	overrideHost = updatable
)

func TestMain(m *testing.M) {
	envoytest.ActAsCurl()
	// Most tests wait most of the time, for ticks of the plugin, so their number need not be that of the CPUs. A
	// command line has its own way.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	code := m.Run()
	started := gateways.everyone()
	if code == 0 && len(started) > 0 {
		time.Sleep(3 * time.Second) // more than two ticks: all gauges are of now
	}
	for _, g := range started {
		if left := g.leftovers(); code == 0 && left != "" {
			fmt.Printf("FAIL: after all tests the gateway (%s) still counts%s\n", g.name, left)
			code = 1
		}
		g.stop()
	}
	os.Exit(code)
}

// versions are those of $ENVOY_VERSIONS (comma list), or "own" for $ENVOY, or
// the ones the project supports.
func versions() []string {
	if list := os.Getenv("ENVOY_VERSIONS"); list != "" {
		return strings.Split(list, ",")
	}
	if os.Getenv("ENVOY") != "" {
		return []string{"own"}
	}
	return wheel.Versions
}

// each runs f on every Envoy version at once, with a gateway of the given kind
// that has no open sessions and no requests in flight, and that no other test uses
// meanwhile.
func each(t *testing.T, k kind, f func(*testing.T, *gateway)) {
	t.Helper()
	for _, v := range versions() {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			g := gateways.take(t, k, v)
			began := time.Now()
			t.Cleanup(func() { t.Attr("own-seconds", fmt.Sprintf("%.1f", time.Since(began).Seconds())) }) // for build/envoy/matrix
			mark := g.envoy.Log.Len()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("Envoy's log during this test (last 60 lines):\n%s", tail(g.envoy.Log.Since(mark), 60))
				}
			})
			g.complaints.Store(0)
			if !g.settled { // the last test failed half way
				g.settle(t)
			}
			g.settled = false
			before := g.counts(t)
			f(t, g)
			g.settle(t)
			g.healthy(t, mark, before)
		})
	}
}

func (g *gateway) stop() {
	g.envoy.Stop()
	g.closeReplicas()
	if g.discovery != nil {
		g.discovery.close()
		os.RemoveAll(g.discovery.dir)
	}
	if g.resources != "" {
		os.RemoveAll(filepath.Dir(g.resources))
	}
}

func (g *gateway) closeReplicas() {
	for _, r := range g.replicas {
		r.Close()
	}
}

// settle releases the test's sessions, waits until the gateway shows that
// nothing is open or in flight, and empties the replicas' records.
func (g *gateway) settle(t *testing.T) {
	t.Helper()
	for _, r := range g.replicas {
		r.Release()
	}
	g.mu.Lock()
	ids := keys(g.sessions)
	g.sessions = map[string]bool{}
	g.mu.Unlock()
	g.release(t, ids...)
	// Gauges lag by a tick, so a zero may be an old one. As many marker sessions as
	// the gauges do not show yet, once they show, prove that the rest is of now.
	var shown uint64
	for _, n := range g.perReplica(t, statSessions) {
		shown += n
	}
	markers := newIDs(1)
	if shown == 1 {
		markers = newIDs(2)
	}
	for _, id := range markers {
		if r, err := g.client.send(t.Context(), http.MethodGet, chatPath, nil, "X-Session-ID", id); err != nil || r.Status != 200 {
			t.Errorf("marker session: status %d, %v", r.Status, err)
		}
	}
	g.waitOpenTotal(t, uint64(len(markers)))
	g.waitInflight(t, 0)
	g.release(t, markers...)
	for _, r := range g.replicas {
		r.Forget()
	}
	g.settled = true
}

// healthy checks that the process lives and that neither it nor the plugin
// complained of a fault.
func (g *gateway) healthy(t *testing.T, mark int, before envoytest.Stats) {
	t.Helper()
	if !g.envoy.Running() {
		t.Fatalf("Envoy died:\n%s", g.envoy.Log.Tail(40))
	}
	for line := range strings.Lines(g.envoy.Log.Since(mark)) {
		for _, bad := range []string{"panic", "fatal error", "proxy_on_", "wasm trap", "assert failure"} {
			if !g.crashes && strings.Contains(line, bad) {
				t.Errorf("Envoy's log: %s", strings.TrimSpace(line))
				return
			}
		}
	}
	for name, n := range g.counts(t) {
		if isFault(name) && n != before[name] {
			t.Errorf("%s is %d, before the test %d", name, n, before[name])
		}
	}
	for name, n := range g.stats(t, `vm_reload`) {
		if n != 0 && !g.crashes {
			t.Errorf("the plugin trapped: %s is %d", name, n)
		}
	}
}

// leftovers says what a gateway still counts when all tests are over.
func (g *gateway) leftovers() string {
	stats, err := g.envoy.Admin.Stats(context.Background(), `^wasmcustom\.pinwheel_(sessions|inflight|errors_total)\.`)
	if err != nil {
		return err.Error()
	}
	var out string
	for name, n := range stats {
		if n != 0 && (isFault(name) || !strings.HasPrefix(name, statErrors)) {
			out += fmt.Sprintf(" %s=%d", name, n)
		}
	}
	return out
}

// until polls f until it reports true or patience ends; f's text describes what
// it saw.
func until(t *testing.T, what string, f func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, saw := f()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v; last seen: %s", what, patience, saw)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
