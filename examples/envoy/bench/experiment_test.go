package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// inTest is what experiments share, without Envoy and modules.
func inTest(t *testing.T) *bench {
	t.Helper()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := envoytest.LoadBootstrap(filepath.Join(root, "examples", "envoy", "envoy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return &bench{
		settings: settings{Rounds: 3, Duration: 5 * time.Millisecond, Connections: 2, Sessions: 10},
		root:     root, dir: t.TempDir(), text: text, load: inProcess(t), progress: &progress{out: io.Discard},
	}
}

// Values of one index are from one round, whatever the order in which subjects take turns.
func TestRounds(t *testing.T) {
	b := inTest(t)
	var order []string
	var subjects []subject
	for i, name := range []string{"a", "b", "c"} {
		a := &arm{name: name, addr: b.load.replicas[i], also: []int{os.Getpid()}}
		subjects = append(subjects, subject{arm: a, order: b.turns(), between: func() error {
			order = append(order, name)
			return nil
		}})
	}
	all, err := b.rounds(t.Context(), b.Rounds, subjects)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "abccbaabc" {
		t.Errorf("order %s", got)
	}
	for i, s := range all {
		for _, m := range s {
			if len(s) != b.Rounds || m.Rate <= 0 || m.P50 <= 0 || m.P99 < m.P50 || m.CPU < 0 {
				t.Errorf("subject %d: %+v", i, s)
			}
		}
	}
	order, b.Duration = nil, 2*slice
	if all, err = b.rounds(t.Context(), 1, subjects); err != nil || len(all[0]) != 1 || strings.Join(order, "") != "abccba" {
		t.Errorf("two turns: order %q, %+v, %v", order, all, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.rounds(ctx, 1, subjects); err == nil {
		t.Error("no error when interrupted")
	}
}

// A session of a load of first turns comes once, and is released once.
func TestFreshSessions(t *testing.T) {
	var mu sync.Mutex
	sent, released := map[string]int{}, map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if id := req.Header.Get("X-Session-Id"); id != "" {
			sent[id]++
		} else {
			for _, id := range strings.Split(req.FormValue("session_id"), ",") {
				released[id]++
			}
		}
		_, _ = io.WriteString(w, answerBody)
	}))
	defer server.Close()
	b := inTest(t)
	a := &arm{name: "a", addr: server.Listener.Addr().String(), also: []int{os.Getpid()}}
	if _, err := b.rounds(t.Context(), b.Rounds, []subject{b.placing(a)}); err != nil {
		t.Fatal(err)
	}
	for id, n := range sent {
		if n != 1 || released[id] != 1 {
			t.Errorf("%s came %d times and was released %d times", id, n, released[id])
		}
	}
	if b.load.sent[a.addr] != len(sent) || len(sent) == 0 {
		t.Errorf("%d requests, counted %d", len(sent), b.load.sent[a.addr])
	}
}

func TestOpenSendsEachSessionOnce(t *testing.T) {
	var mu sync.Mutex
	sent := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent[req.Header.Get("X-Session-Id")]++
		_, _ = io.WriteString(w, answerBody)
	}))
	defer server.Close()
	b := inTest(t)
	const sessions = 20_003 // more than one order
	if err := b.open(&arm{addr: server.Listener.Addr().String()}, sessions); err != nil {
		t.Fatal(err)
	}
	if len(sent) != sessions || sent["rollout-00000000"] != 1 || sent["rollout-00020002"] != 1 {
		t.Errorf("%d sessions", len(sent))
	}
}

// Many latencies are thinned evenly: quantiles stay what they are.
func TestLatenciesAreBounded(t *testing.T) {
	d := drive{order: order{Connections: mostLatencies / 64}}
	for d.n = range 1000 {
		d.keep(time.Duration(d.n))
	}
	if len(d.took) > 64 || len(d.took) < 32 || d.begin != 0 {
		t.Fatalf("%d kept, the first %v", len(d.took), d.begin)
	}
	for i, took := range d.took {
		if took != time.Duration(i*d.stride) {
			t.Errorf("%v at %d with a stride of %d", took, i, d.stride)
		}
	}
}

// Each line of the stepwise experiment has a listener, and is compared with a line before.
func TestStepListeners(t *testing.T) {
	b := inTest(t)
	lines := stepLines(b.load.replicas)
	for i, l := range lines {
		if l.base >= i || l.base < 0 && l.times > 0 {
			t.Errorf("%s, %s: compared with line %d", l.of, l.arm, l.base)
		}
		text, err := b.text.Listeners(func(text envoytest.Bootstrap) (envoytest.Bootstrap, error) {
			return l.listener(text, 10000, 4242, "/x/steps.wasm")
		})
		if err != nil {
			t.Errorf("%s, %s: %v", l.of, l.arm, err)
			continue
		}
		has := func(part string) bool { return strings.Contains(string(text), part) }
		config, err := json.Marshal(l.config["do"])
		if err != nil {
			t.Fatal(err)
		}
		if !has("4242") || has("/x/steps.wasm") != (l.keep != nil) || has("FILTER_STATE") != l.state ||
			strings.Count(string(text), "- {match: {prefix: /team-") != max(0, l.routes-1) || l.times > 0 && !has(`"do":`+string(config)) {
			t.Errorf("%s, %s:\n%s", l.of, l.arm, text)
		}
	}
}

func TestKeepCallbacks(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	all, err := buildWasm(t.Context(), root, dir, withEmpty)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range stepLines([]string{"a", "b", "c"}) {
		if l.keep == nil {
			continue
		}
		to := filepath.Join(dir, "kept.wasm")
		if err := keepCallbacks(all, to, l.keep); err != nil {
			t.Fatal(err)
		}
		got, err := callbacks(to)
		if want := slices.Sorted(slices.Values(l.keep)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", l.arm, got, err)
		}
	}
}

// A goal names a row that its experiment makes.
func TestGoalsHaveFigures(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := readResults(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range goals() {
		if r, ok := kept[g.experiment]; ok {
			if _, ok := r.find(g.key); !ok {
				t.Errorf("%s: no row %q in %s", g.text, g.key, g.experiment)
			}
		}
	}
}

func TestSoakResult(t *testing.T) {
	r, err := soakResult([]byte(`{"envoy": "1.40.0", "requests": 12000000, "violations": 1, "load": {"sessions_begun": 7},
		"events": {"drain": 2, "crash": 3}, "memory": {"rss": {"last_bytes": 2000000}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for figure, want := range map[string]float64{"requests": 12e6, "violations": 1, "sessions": 7, "events": 5, "memory at the end": 2} {
		if row, ok := r.find([3]string{"", withPinwheel, figure}); !ok || row.Median != want {
			t.Errorf("%s: %+v", figure, row)
		}
	}
	if _, err := soakResult([]byte("{}")); err == nil {
		t.Error("no error for what is no report")
	}
	if text := page(map[string]result{"soak": r}); !strings.Contains(text, "## Soak\n") || !strings.Contains(text, "`make soak`, Envoy 1.40.0") {
		t.Errorf("page\n%s", text)
	}
}
