// Package clients holds the example's clients, real SDKs of OpenAI, to what really happens in front of a real Envoy.
package clients

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

const root = "../.."

// TestMain plays curl when the README's commands call it, for a machine need not have it.
func TestMain(m *testing.M) {
	envoytest.ActAsCurl()
	os.Exit(m.Run())
}

// patience bounds every wait of these tests; none depends on how long it takes.
const patience = 2 * time.Minute

// model is a simulated model server that remembers the completions asked of it, by session.
type model struct {
	*replica.Server
	addr string
	http *http.Server
	held atomic.Bool // answers stay away until their client is gone
	mute atomic.Bool // answers do not tell how much of the prompt was cached, as vLLM's by default

	mu    sync.Mutex
	turns map[string]int
	last  http.Header // of the last completion
}

func openModel(t *testing.T) *model {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:"+freePort(t)) // one that it gets again in reopen
	if err != nil {
		t.Fatal(err)
	}
	m := &model{addr: l.Addr().String(), turns: map[string]int{}}
	m.Server, err = replica.New(replica.Config{Name: m.addr, DecodePerToken: 1, TimeScale: 1, Wait: m.wait})
	if err != nil {
		t.Fatal(err)
	}
	m.serve(t, l)
	return m
}

func (m *model) serve(t *testing.T, l net.Listener) {
	server := &http.Server{Handler: m}
	m.http = server
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
}

// reopen listens again at the same address after http.Close.
func (m *model) reopen(t *testing.T) {
	t.Helper()
	until(t, "the port is free again", func() bool {
		l, err := net.Listen("tcp", m.addr)
		if err == nil {
			m.serve(t, l)
		}
		return err == nil
	})
}

func (m *model) wait(ctx context.Context, _ time.Duration) error {
	if m.held.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		m.mu.Lock()
		m.turns[r.Header.Get("X-Session-ID")]++
		m.last = r.Header.Clone()
		m.mu.Unlock()
	}
	if m.mute.Load() {
		w = untold{w}
	}
	m.Server.ServeHTTP(w, r)
}

// untold takes the key out of answers; the replica writes a whole object or event at a time.
type untold struct{ http.ResponseWriter }

func (w untold) Write(b []byte) (int, error) {
	_, err := w.ResponseWriter.Write(regexp.MustCompile(`"prompt_tokens_details":\{[^}]*\}`).ReplaceAll(b, []byte(`"prompt_tokens_details":null`)))
	return len(b), err
}

func (w untold) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func freePort(t *testing.T) string {
	t.Helper()
	port, err := envoytest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

// gateway is an Envoy with examples/envoy/envoy.yaml before three models.
type gateway struct {
	addr   string
	models []*model
}

func start(t *testing.T) *gateway {
	t.Helper()
	wasm, err := envoytest.Wasm(root)
	if err != nil {
		t.Fatal(err)
	}
	if wasm, err = filepath.Abs(wasm); err != nil {
		t.Fatal(err)
	}
	bin, err := wheel.Find(t.Context(), wheel.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	port, _ := strconv.Atoi(freePort(t))
	g := &gateway{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	text, err := envoytest.LoadBootstrap(filepath.Join(root, "examples", "envoy", "envoy.yaml"))
	edit := func(f func() (envoytest.Bootstrap, error)) {
		if err == nil {
			text, err = f()
		}
	}
	edit(func() (envoytest.Bootstrap, error) { return text.Wasm(wasm) })
	edit(func() (envoytest.Bootstrap, error) { return text.Port(10000, port) })
	edit(func() (envoytest.Bootstrap, error) { return text.Port(9901, 0) })
	var addrs []string
	for i := range 3 {
		m := openModel(t)
		g.models, addrs = append(g.models, m), append(addrs, m.addr)
		_, p, _ := net.SplitHostPort(m.addr)
		n, _ := strconv.Atoi(p)
		edit(func() (envoytest.Bootstrap, error) { return text.Port(8001+i, n) })
	}
	edit(func() (envoytest.Bootstrap, error) {
		return text.Plugin(func(c map[string]any) { c["replicas"], c["admin"] = addrs, map[string]any{} })
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	envoy, err := envoytest.Start(t.Context(), envoytest.Options{Binary: bin, Bootstrap: file, Concurrency: 2, ReadyTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(envoy.Stop)
	return g
}

// hold keeps answers away from clients: a stream begins, and its first token does not come.
func (g *gateway) hold(on bool) {
	for _, m := range g.models {
		m.held.Store(on)
	}
}

// running is how many completions the models have under way.
func (g *gateway) running() (sum int64) {
	for _, m := range g.models {
		sum += m.Stats().Running
	}
	return sum
}

// home is the one model that has had turns of a session.
func (g *gateway) home(t *testing.T, id string) *model {
	t.Helper()
	for _, m := range g.models {
		if g.seen()[id][m.addr] > 0 {
			return m
		}
	}
	t.Fatalf("no model has had a turn of %s", id)
	return nil
}

// forget empties what models remember, between tests.
func (g *gateway) forget() {
	g.hold(false)
	for _, m := range g.models {
		m.mu.Lock()
		clear(m.turns)
		m.mu.Unlock()
	}
}

// seen is, for each session, how many turns each model has had of it.
func (g *gateway) seen() map[string]map[string]int {
	all := map[string]map[string]int{}
	for _, m := range g.models {
		m.mu.Lock()
		for id, n := range m.turns {
			if all[id] == nil {
				all[id] = map[string]int{}
			}
			all[id][m.addr] = n
		}
		m.mu.Unlock()
	}
	return all
}

// open is how many sessions are open, as the plugin's status says.
func (g *gateway) open(t *testing.T) int {
	t.Helper()
	res, err := http.Get("http://" + g.addr + "/pinwheel/status")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var status struct {
		Totals struct {
			Open *int `json:"open_sessions"`
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&status); err != nil || status.Totals.Open == nil {
		t.Fatalf("the status tells no sessions: %v", err)
	}
	return *status.Totals.Open
}

// until polls for a condition.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}

// allReleased fails unless no session is open any more. A client has waited for the answer to its release, so there is
// nothing to wait for here.
func (g *gateway) allReleased(t *testing.T) {
	t.Helper()
	if n := g.open(t); n != 0 {
		t.Errorf("%d sessions are still open", n)
	}
}
