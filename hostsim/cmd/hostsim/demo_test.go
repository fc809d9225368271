package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

const shipped = "../../../dist/pinwheel.wasm"

// The whole demo with the shipped plugin: no session moves, the replicas' shares are even, and the plugin's hit rate is
// what one cache for everybody would reach, less what rows with one system prompt compute on several replicas.
func TestDemo(t *testing.T) {
	code, stdout, stderr := command("demo", "--wasm", shipped, "--json")
	if code != 0 {
		t.Fatalf("exit %d (is %s there? `make wasm` builds it): %s", code, shipped, stderr)
	}
	var r demoResult
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	if r.Sessions != 24 || r.Turns != 736 || len(r.Arms) != 2 || math.Abs(r.IdealHitRate-0.9509) > 0.0005 {
		t.Fatalf("%+v", r)
	}
	t.Run("front page", func(t *testing.T) { frontPageShowsTheDemo(t, &r) })
	spread, pinned := r.Arms[0], r.Arms[1]
	if len(pinned.Moves) != 0 || len(spread.Moves) < 300 {
		t.Errorf("moves: %d pinned, %d round robin", len(pinned.Moves), len(spread.Moves))
	}
	if pinned.HitRate < r.IdealHitRate-0.01 || pinned.HitRate > r.IdealHitRate || spread.HitRate > pinned.HitRate-0.2 {
		t.Errorf("hit rates: ideal %.4f, pinned %.4f, round robin %.4f", r.IdealHitRate, pinned.HitRate, spread.HitRate)
	}
	sessions := 0
	for _, row := range pinned.Replicas {
		sessions += row.Sessions
		if row.Sessions < 5 || row.Sessions > 7 {
			t.Errorf("replica %s has %d sessions of 24, want 6, give or take one that ended before another began", row.Replica, row.Sessions)
		}
	}
	if sessions != 24 {
		t.Errorf("%d sessions over all replicas, want 24: one was on two", sessions)
	}
	for _, row := range spread.Replicas {
		if row.Turns != 184 {
			t.Errorf("round robin gave %s %d turns, want 184", row.Replica, row.Turns)
		}
	}
}

var numbers = regexp.MustCompile(`[0-9.]+`)

// The front page's table is the demo's, but for what varies: its numbers.
func frontPageShowsTheDemo(t *testing.T, r *demoResult) {
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```text\n")
	shown, _, _ = strings.Cut(shown, "```")
	var rows bytes.Buffer
	r.rows(&rows)
	columns := func(text string) string {
		return strings.Join(strings.Fields(numbers.ReplaceAllString(text, "0")), " ")
	}
	if got := columns(rows.String()); got != columns(shown) {
		t.Errorf("the demo prints\n%s, README.md shows\n%s", rows.String(), shown)
	}
}

// shortTrace is three sessions of four turns that grow by a block each.
func shortTrace(t *testing.T) []trace.Session {
	t.Helper()
	var text strings.Builder
	for i := range 3 {
		fmt.Fprintf(&text, `{"id":"s%d","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,1]],[1,128,1,0,1,[1,1]],[2,192,1,0,1,[2,1]],[3,256,1,0,1,[3,1]]]}`+"\n", i)
	}
	sessions, err := trace.NewWEKAReader(strings.NewReader(text.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return sessions
}

// gatewayOf is a stand-in gateway that sends each request to the replica that pick names.
func gatewayOf(t *testing.T, f *fleet, pick func(*http.Request) int, finish http.HandlerFunc) string {
	t.Helper()
	var mux http.ServeMux
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		target := &url.URL{Scheme: "http", Host: f.addresses[pick(r)]}
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.ErrorLog = log.New(io.Discard, "", 0)
		proxy.ServeHTTP(w, r)
	})
	mux.HandleFunc("POST /finish_session", finish)
	srv := httptest.NewServer(&mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

func newTestFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f, err := startFleet(n, replica.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.stop() })
	return f
}

func TestVerdict(t *testing.T) {
	fine := func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("{}")) }
	var n atomic.Int64
	tests := []struct {
		name   string
		pick   func(*http.Request) int
		finish http.HandlerFunc
		want   string // of the error; empty: none
	}{
		{"each session stays", func(r *http.Request) int { return int(r.Header.Get("x-session-id")[1]-'0') % 2 }, fine, ""},
		{"turns alternate", func(*http.Request) int { return int(n.Add(1) % 2) }, fine, "moved sessions"},
		{"finish_session is not answered", func(*http.Request) int { return 0 }, http.NotFound, "the gateway answered 404"},
		{"finish_session is forwarded", func(*http.Request) int { return 0 }, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(replica.ReplicaHeader, "r1")
		}, "finish_session was forwarded to r1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &demoRun{flags: &demoFlags{}, sessions: shortTrace(t)}
			f := newTestFleet(t, 2)
			a := &arm{name: "plugin", fleet: f, release: true, url: gatewayOf(t, f, tt.pick, tt.finish)}
			err := a.replay(context.Background(), d.sessions, newProgress(new(bytes.Buffer), "x", d.turns()))
			if err == nil {
				err = d.result(a).verdict()
			}
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("error %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// What the client reports must be what the replicas counted: 12 turns, each hit but for its last block.
func TestArmCounts(t *testing.T) {
	d := &demoRun{flags: &demoFlags{}, sessions: shortTrace(t)}
	f := newTestFleet(t, 1)
	a := &arm{name: "x", fleet: f, url: gatewayOf(t, f, func(*http.Request) int { return 0 }, http.NotFound)}
	if err := a.replay(context.Background(), d.sessions, newProgress(new(bytes.Buffer), "x", 12)); err != nil {
		t.Fatal(err)
	}
	r := d.result(a)
	want := demoRow{Sessions: 3, Turns: 12, PromptTokens: 3 * (64 + 128 + 192 + 256), CachedTokens: 3 * (64 + 128 + 192)}
	if got := r.Arms[0].Total; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if r.IdealHitRate != want.HitRate() || r.UniqueTokens != 3*256 {
		t.Errorf("ideal %v, %d tokens", r.IdealHitRate, r.UniqueTokens)
	}
	if err := a.agrees(); err != nil {
		t.Error(err)
	}
	a.served[f.addresses[0]].turns++
	if err := a.agrees(); err == nil {
		t.Error("a turn more than the replica counted, and nobody noticed")
	}
}

func TestReplicasThatRefuseAreNamed(t *testing.T) {
	f := newTestFleet(t, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	defer srv.Close()
	a := &arm{name: "x", fleet: f, url: srv.URL}
	err := a.replay(context.Background(), shortTrace(t), newProgress(new(bytes.Buffer), "x", 12))
	if err == nil || !strings.Contains(err.Error(), "turn 1: the gateway answered 503") {
		t.Errorf("error %v", err)
	}
}

func TestProgressWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "arm", 8)
	for range 8 {
		p.step()
	}
	p.end()
	if got := strings.Count(out.String(), "\n"); got != 5 || !strings.Contains(out.String(), "100% of 8 turns") {
		t.Errorf("%d lines:\n%s", got, out.String())
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
