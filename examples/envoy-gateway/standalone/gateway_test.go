package standalone_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy-gateway/standalone"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

const (
	root    = "../../.."
	example = "../pinwheel.yaml"
	envoy   = "1.40.0"
)

// setup is one Envoy Gateway with three replicas.
type setup struct {
	*standalone.Gateway
	objects  standalone.Objects
	registry *standalone.Registry
	replicas []*envoytest.Replica
	wasm     []byte
	// closeLater keeps a replica open until the gateway has ended.
	closeLater func(*envoytest.Replica)
}

// start brings up everything and waits for Envoy; edit may change the objects first.
func start(t *testing.T, edit func(*standalone.Objects)) *setup {
	t.Helper()
	binary := built(t, "envoy-gateway")
	s := &setup{closeLater: func(r *envoytest.Replica) { t.Cleanup(r.Close) }}
	var err error
	if s.wasm, err = os.ReadFile(built(t, "pinwheel.wasm")); err != nil {
		t.Fatal(err)
	}
	names, err := standalone.NameServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { names.Close() })
	if s.registry, err = standalone.Serve(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.registry.Close)
	image, digest := s.push(t, s.wasm, "0.0.1")
	for range 3 {
		r, err := envoytest.OpenReplica("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.closeLater(r)
		s.replicas = append(s.replicas, r)
	}
	s.objects, err = standalone.Load(example, standalone.Options{
		Image: image, Digest: digest, Replicas: addresses(s.replicas...), NameServer: names.LocalAddr().String(), EnvoyVersion: envoy,
	})
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(&s.objects)
	}
	if s.Gateway, err = standalone.Start(t.Context(), binary, t.TempDir(), envoy, s.objects); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("what Envoy Gateway and Envoy said last, requests left out:\n%s", s.said(60))
		}
	})
	return s
}

// built is the path of what make puts into dist.
func built(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "dist", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run `make envoy-gateway`", err)
	}
	return path
}

// push publishes a module.
func (s *setup) push(t *testing.T, wasm []byte, version string) (image, digest string) {
	t.Helper()
	image, digest, err := s.registry.Push(t.Context(), built(t, "ship"), t.TempDir(), wasm, version)
	if err != nil {
		t.Fatal(err)
	}
	return image, digest
}

// said is the end of the log without the access log, which is JSON.
func (s *setup) said(lines int) string {
	var all []string
	for line := range strings.Lines(s.Log.Since(0)) {
		if !strings.HasPrefix(line, "{") {
			all = append(all, line)
		}
	}
	return strings.Join(all[max(0, len(all)-lines):], "")
}

func addresses(replicas ...*envoytest.Replica) []string {
	var all []string
	for _, r := range replicas {
		all = append(all, r.Addr)
	}
	return all
}

// until polls for three minutes: a loaded machine may need one to compile the plugin.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not in three minutes: %s", what)
		}
	}
}

// reply is an answer as the client saw it.
type reply struct {
	status                           int
	served, chosen, reason, attempts string
	body                             string
}

// send performs one request, whose error it returns as status 0. Header pairs come as name, value, name, value.
func (s *setup) send(t *testing.T, method, path string, header ...string) reply {
	t.Helper()
	return s.do(t, method, path, "", header...)
}

// post sends a JSON body.
func (s *setup) post(t *testing.T, path, body string) reply {
	t.Helper()
	return s.do(t, "POST", path, body, "content-type", "application/json")
}

func (s *setup) do(t *testing.T, method, path, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.objects.Addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{body: err.Error()}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{body: err.Error()}
	}
	return reply{
		res.StatusCode, res.Header.Get(envoytest.ServedByHeader), res.Header.Get("x-pinwheel-replica"),
		res.Header.Get("x-pinwheel-reason"), res.Header.Get("x-envoy-attempt-count"), strings.TrimSpace(string(text)),
	}
}

func (s *setup) turn(t *testing.T, session string) reply {
	t.Helper()
	return s.send(t, "GET", "/v1/models", "x-session-id", session)
}

// ready waits until Envoy serves with the plugin and the plugin has found the replicas.
func (s *setup) ready(t *testing.T) {
	t.Helper()
	until(t, "a session is placed", func() bool {
		if !s.Running() {
			t.Fatal("Envoy Gateway ended")
		}
		return s.release(t, "first") && s.turn(t, "first").reason == "placed" && s.release(t, "first")
	})
}

// release ends a session; it reports whether the plugin has answered.
func (s *setup) release(t *testing.T, session string) bool {
	t.Helper()
	r := s.send(t, "POST", "/finish_session?session_id="+session)
	return r.status == 200 && strings.Contains(r.body, `"ok"`) && strings.Contains(r.body, session)
}
