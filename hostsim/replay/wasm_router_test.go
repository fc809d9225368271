package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

func pinwheel(t testing.TB) []byte {
	t.Helper()
	wasm, err := os.ReadFile("../../dist/pinwheel.wasm")
	if errors.Is(err, os.ErrNotExist) {
		t.Fatal("there is no dist/pinwheel.wasm: build it by `make wasm`")
	}
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

func threeMembers() []Member {
	return []Member{{Address: "10.0.0.1:8000", Weight: 1}, {Address: "10.0.0.2:8000", Weight: 1}, {Address: "[fd00::3]:8000", Weight: 1}}
}

// codeCache is where compiled modules live between runs of a test, or "" where the machine has no place for caches.
func codeCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "hostsim")
}

func startRouter(t testing.TB, c WasmConfig, fleet []Member) *WasmRouter {
	t.Helper()
	c.Wasm, c.CacheDir = pinwheel(t), codeCache()
	r, err := NewWasmRouter(context.Background(), c, fleet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// say is a decision as "replica reason".
func say(t testing.TB, r Router, now time.Duration, session string) (string, Decision) {
	t.Helper()
	d, err := r.Turn(now, &Turn{Session: session, Prompt: 100, BlockTokens: 64, Blocks: []uint64{1}})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", d.Replica, d.Reason), d
}

// A session's life: placed, pinned on whichever worker, moved when its replica goes, placed anew when it was released.
func TestWasmRouterFollowsASession(t *testing.T) {
	for _, policy := range []string{"sticky_least_loaded", "cache_aware"} {
		fleet := threeMembers()
		r := startRouter(t, WasmConfig{Policy: policy, Workers: 3}, fleet)
		first, d := say(t, r, 0, "a")
		if d.Reason != "placed" || d.Replica < 0 {
			t.Fatalf("%s: the first turn: %s", policy, first)
		}
		home := d.Replica
		for i := range 20 {
			if err := r.Done(time.Duration(i)*time.Second, d, 200); err != nil {
				t.Fatal(err)
			}
			var next string
			if next, d = say(t, r, time.Duration(i)*time.Second, "a"); next != fmt.Sprintf("%d pinned", home) {
				t.Fatalf("%s: turn %d: %s, home is %d", policy, i, next, home)
			}
		}
		if err := r.Done(30*time.Second, d, 200); err != nil {
			t.Fatal(err)
		}
		fleet[home].Draining = true
		mustBe(t, r.Members(31*time.Second, fleet))
		if next, _ := say(t, r, 32*time.Second, "a"); next != fmt.Sprintf("%d pinned", home) {
			t.Errorf("%s: while its replica drains: %s", policy, next)
		}
		for i := range 6 {
			if next, d := say(t, r, 33*time.Second, fmt.Sprint("new", i)); d.Replica == home {
				t.Errorf("%s: a new session on the draining replica: %s", policy, next)
			}
		}
		fleet[home].Gone = true
		mustBe(t, r.Members(34*time.Second, fleet))
		if next, d := say(t, r, 35*time.Second, "a"); d.Replica == home || d.Reason != "failover_removed" {
			t.Errorf("%s: after its replica went: %s", policy, next)
		}
		mustBe(t, r.Finish(36*time.Second, "a"))
		if next, d := say(t, r, 37*time.Second, "a"); d.Reason != "placed" {
			t.Errorf("%s: after its release: %s", policy, next)
		}
	}
}

// Turns come to all workers, about as many to each.
func TestWasmRouterDealsTurns(t *testing.T) {
	r := startRouter(t, WasmConfig{Workers: 3}, threeMembers())
	var turns [3]int
	for i := range 60 {
		_, d := say(t, r, 0, fmt.Sprint(i))
		turns[d.Ticket.(*hostsim.Stream).Worker().Index()]++
		mustBe(t, r.Done(0, d, 200))
	}
	if slices.Min(turns[:]) < 10 {
		t.Errorf("the workers had %v turns", turns)
	}
}

func mustBe(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Broken connections and statuses of failure make a replica unhealthy.
func TestWasmRouterReportsFailures(t *testing.T) {
	for _, status := range []int{0, 500, 503} {
		r := startRouter(t, WasmConfig{Workers: 1}, threeMembers())
		_, d := say(t, r, 0, "a")
		for i := range 3 {
			mustBe(t, r.Done(time.Duration(i)*time.Millisecond, d, status))
			_, next := say(t, r, time.Duration(i)*time.Millisecond, "a")
			switch moved := next.Replica != d.Replica; {
			case i < 2 && moved:
				t.Fatalf("status %d: moved after %d failures", status, i+1)
			case i == 2 && (!moved || next.Reason != "failover_unhealthy"):
				t.Errorf("status %d: %d %s after three failures", status, next.Replica, next.Reason)
			}
			d = next
		}
	}
}

// Requests that run count until they are done.
func TestWasmRouterKeepsStreamsOpen(t *testing.T) {
	r := startRouter(t, WasmConfig{Policy: "least_loaded", Workers: 1}, threeMembers())
	var running []Decision
	at := [3]int{}
	for i := range 9 {
		_, d := say(t, r, 0, fmt.Sprint(i))
		running, at[d.Replica] = append(running, d), at[d.Replica]+1
	}
	if at != [3]int{3, 3, 3} {
		t.Fatalf("nine turns went %v", at)
	}
	for _, d := range running {
		if d.Replica == 2 {
			mustBe(t, r.Done(0, d, 200))
		}
	}
	for i := range 3 {
		if next, d := say(t, r, 0, fmt.Sprint("more", i)); d.Replica != 2 {
			t.Errorf("turn %d after replica 2 had finished its own: %s", i, next)
		}
	}
}

func TestWasmRouterNamesNobodyWhereNobodyIs(t *testing.T) {
	fleet := threeMembers()
	r := startRouter(t, WasmConfig{}, fleet)
	for i := range fleet {
		fleet[i].Gone = true
	}
	mustBe(t, r.Members(0, fleet))
	next, d := say(t, r, 0, "a")
	if next != "-1 no_replica" {
		t.Error(next)
	}
	mustBe(t, r.Done(0, d, 503))
}

// Whatever the user's configuration says of naming, the replay speaks its own way, and keeps the rest.
func TestWasmRouterConfiguration(t *testing.T) {
	const config = `{"pools":[{"name":"p","replicas":["10.9.9.9:1"]}],"target":{"header":"x-other","encoding":"base64"},
		"session":{"headers":["x-mine"],"scope_headers":["x-tenant"],"idle_timeout":"10s"},"admin":{"secret":"s"},
		"release":{"path":"/end","secret":"s"},"policy":"random","decision_log":{"enabled":false}}`
	r := startRouter(t, WasmConfig{Config: []byte(config), Policy: "sticky_least_loaded"}, threeMembers())
	_, d := say(t, r, 0, "a")
	mustBe(t, r.Done(0, d, 200))
	if next, _ := say(t, r, 9*time.Second, "a"); next != fmt.Sprintf("%d pinned", d.Replica) {
		t.Error(next)
	}
	mustBe(t, r.Finish(9*time.Second, "a"))
	_, d = say(t, r, 9*time.Second, "b")
	mustBe(t, r.Done(9*time.Second, d, 200))
	if next, d := say(t, r, 40*time.Second, "b"); d.Reason != "placed" && d.Reason != "expired" {
		t.Errorf("after the idle timeout: %s", next)
	}
}

func TestWasmRouterErrors(t *testing.T) {
	wasm := pinwheel(t)
	for _, c := range []struct {
		name   string
		config WasmConfig
		is     error
		says   string
	}{
		{"policy", WasmConfig{Wasm: wasm, Policy: "nearest"}, hostsim.ErrRefused, `"nearest"`},
		{"option", WasmConfig{Wasm: wasm, Config: []byte(`{"consistent_hash":{"load_factor":0.5}}`)}, hostsim.ErrRefused, "consistent_hash.load_factor"},
		{"no object", WasmConfig{Wasm: wasm, Config: []byte(`[1]`)}, ErrRouterConfig, "JSON object"},
		{"null", WasmConfig{Wasm: wasm, Config: []byte(`null`)}, ErrRouterConfig, "JSON object"},
		{"session", WasmConfig{Wasm: wasm, Config: []byte(`{"session":3}`)}, ErrRouterConfig, "session"},
		{"no wasm", WasmConfig{}, hostsim.ErrConfig, "Wasm"},
	} {
		c.config.CacheDir = codeCache()
		_, err := NewWasmRouter(context.Background(), c.config, threeMembers())
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	r := startRouter(t, WasmConfig{}, threeMembers())
	if err := r.Done(0, Decision{Ticket: 7}, 200); !errors.Is(err, ErrRouterConfig) {
		t.Errorf("a foreign ticket: %v", err)
	}
}

// BenchmarkWasmRouterTurn is a pinned turn among 28 replicas and 112 sessions: headers, decision, answer, end.
func BenchmarkWasmRouterTurn(b *testing.B) {
	var fleet []Member
	for i := range 28 {
		fleet = append(fleet, Member{Address: fmt.Sprintf("10.0.0.%d:8000", i+1), Weight: 1})
	}
	r := startRouter(b, WasmConfig{}, fleet)
	turn := &Turn{Prompt: 100, BlockTokens: 64, Blocks: []uint64{1}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		turn.Session = sessionNames[i%len(sessionNames)]
		d, err := r.Turn(0, turn)
		if err != nil {
			b.Fatal(err)
		}
		mustBe(b, r.Done(0, d, 200))
	}
}

// BenchmarkWasmRouterSecond is what a second of the plugin's clock costs: a tick of the main thread and of two workers.
func BenchmarkWasmRouterSecond(b *testing.B) {
	r := startRouter(b, WasmConfig{}, threeMembers())
	now := time.Duration(0)
	for b.Loop() {
		now += time.Second
		r.Advance(now)
	}
}

var sessionNames = func() (names []string) {
	for i := range 112 {
		names = append(names, fmt.Sprint("session-", i))
	}
	return names
}()
