package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// discovery is what gateways with discovered replicas have besides.
type discovery struct {
	dir       string
	endpoints string // the file of Envoy's endpoints, in dir
	template  string // the user's text of that file
	// Between the plugin and the admin interface stands a proxy, which can be
	// closed.
	proxy *http.Server
	addr  string
	asked atomic.Int64 // questions that the proxy passed on
	admin string
}

// startDiscovered runs discovery.yaml with the replicas of endpoints.yaml, both as
// users copy them: only ports, paths and the interval differ, and what edit, if
// there is one, changes.
func startDiscovered(ctx context.Context, bin string, edit func(g *gateway, file string) string) (*gateway, error) {
	root, err := envoytest.Root()
	if err != nil {
		return nil, err
	}
	wasm, err := envoytest.Wasm(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pinwheel-discovery-")
	if err != nil {
		return nil, err
	}
	d := &discovery{dir: dir, endpoints: filepath.Join(dir, "endpoints.yaml")}
	g := &gateway{sessions: map[string]bool{}, discovery: d}
	for range 3 {
		r, err := envoytest.OpenReplica("127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		g.replicas = append(g.replicas, r)
	}
	text, err := os.ReadFile(filepath.Join(root, "examples", "envoy", "endpoints.yaml"))
	if err != nil {
		return nil, err
	}
	d.template = string(text)
	if err := os.WriteFile(d.endpoints, []byte(g.endpointsWith(nil)), 0o644); err != nil {
		return nil, err
	}
	listener, err := envoytest.FreePort()
	if err != nil {
		return nil, err
	}
	g.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(listener))
	g.client = newClient(g.addr)
	admin, err := envoytest.FreePort() // the proxy must know it before Envoy starts
	if err != nil {
		return nil, err
	}
	d.admin = net.JoinHostPort("127.0.0.1", strconv.Itoa(admin))
	if err := d.open("127.0.0.1:0"); err != nil {
		return nil, err
	}
	file, err := envoytest.LoadBootstrap(filepath.Join(root, "examples", "envoy", "discovery.yaml"))
	if err != nil {
		return nil, err
	}
	_, proxy, _ := net.SplitHostPort(d.addr)
	moved := strings.Replace(string(file), "port_value: 9901", "port_value: "+strconv.Itoa(admin), 1) // first Envoy's own,
	moved = strings.Replace(moved, "port_value: 9901", "port_value: "+proxy, 1)                       // then the cluster's
	moved = strings.Replace(moved, "port_value: 10000", "port_value: "+strconv.Itoa(listener), 1)
	moved = strings.Replace(moved, "path: examples/envoy/endpoints.yaml", "path: "+strconv.Quote(d.endpoints), 1)
	if edit != nil {
		moved = edit(g, moved)
	}
	edited, err := envoytest.Bootstrap(moved).Wasm(wasm)
	if err != nil {
		return nil, err
	}
	if edited, err = edited.Plugin(func(c map[string]any) { c["discovery"].(map[string]any)["interval"] = "500ms" }); err != nil {
		return nil, err
	}
	bootstrap := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(bootstrap, []byte(edited), 0o644); err != nil {
		return nil, err
	}
	g.envoy, err = envoytest.Start(ctx, envoytest.Options{Binary: bin, Bootstrap: bootstrap, Concurrency: 2})
	if err != nil {
		g.closeReplicas()
		d.close()
		return nil, err
	}
	// Envoy takes requests a little before its first answer to the plugin.
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		r, err := g.client.send(ctx, http.MethodGet, chatPath, nil)
		if err == nil && r.Reason == "keyless" {
			return g, nil
		}
		if time.Now().After(end) {
			g.envoy.Stop()
			g.closeReplicas()
			d.close()
			return nil, fmt.Errorf("no replica was discovered: reason %q, %v", r.Reason, err)
		}
	}
}

// open lets the plugin reach the admin interface.
func (d *discovery) open(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	d.addr = l.Addr().String()
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: d.admin})
	d.proxy = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.asked.Add(1)
		pass.ServeHTTP(w, r)
	})}
	go d.proxy.Serve(l)
	return nil
}

// close makes connections to the admin interface be refused.
func (d *discovery) close() {
	d.proxy.Close()
}

// notListed is the state of a replica that Envoy is not told of.
const notListed = "not listed"

// endpointsWith is the user's endpoints file with the replicas' addresses, in
// these states; those that are not named are HEALTHY.
func (g *gateway) endpointsWith(states map[string]string) string {
	var out strings.Builder
	for line := range strings.Lines(g.discovery.template) {
		keep := true
		for i, r := range g.replicas {
			_, port, _ := net.SplitHostPort(r.Addr)
			if !strings.Contains(line, fmt.Sprintf("port_value: %d}", 8001+i)) {
				continue
			}
			line = strings.Replace(line, fmt.Sprintf("port_value: %d}", 8001+i), "port_value: "+port+"}", 1)
			if s := states[r.Addr]; s == notListed {
				keep = false
			} else if s != "" {
				line = strings.Replace(line, "HEALTHY", s, 1)
			}
			break
		}
		if keep {
			out.WriteString(line)
		}
	}
	return out.String()
}

// list gives Envoy new states of the replicas, and waits until all workers know
// them: Envoy shows them, the plugin has asked twice since, the second time after
// it had taken in the first answer, and every worker has had its tick.
func (g *gateway) list(t *testing.T, states map[string]string) {
	t.Helper()
	next := g.discovery.endpoints + ".next"
	if err := os.WriteFile(next, []byte(g.endpointsWith(states)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, g.discovery.endpoints); err != nil {
		t.Fatal(err)
	}
	until(t, fmt.Sprintf("Envoy to know of %v", states), func() (bool, string) {
		shown := g.shown(t)
		for _, r := range g.replicas {
			want := states[r.Addr]
			if want == "" {
				want = "HEALTHY"
			}
			if shown[r.Addr] != want {
				return false, fmt.Sprint(shown)
			}
		}
		return true, ""
	})
	asked := g.discovery.asked.Load()
	until(t, "the plugin to ask twice", func() (bool, string) {
		n := g.discovery.asked.Load() - asked
		return n >= 2, fmt.Sprint(n)
	})
	time.Sleep(600 * time.Millisecond) // a tick is an interval long
}

// shown is what Envoy's admin interface says of each replica.
func (g *gateway) shown(t *testing.T) map[string]string {
	t.Helper()
	page, err := g.envoy.Admin.Get(t.Context(), "/clusters?format=json")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Clusters []struct {
			Name  string
			Hosts []struct {
				Address struct {
					Socket struct {
						Address string
						Port    int `json:"port_value"`
					} `json:"socket_address"`
				}
				Health struct {
					EDS string `json:"eds_health_status"`
				} `json:"health_status"`
			} `json:"host_statuses"`
		} `json:"cluster_statuses"`
	}
	if err := json.Unmarshal([]byte(page), &answer); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range g.replicas {
		out[r.Addr] = notListed
	}
	for _, c := range answer.Clusters {
		for _, h := range c.Hosts {
			if c.Name == "vllm" {
				out[net.JoinHostPort(h.Address.Socket.Address, strconv.Itoa(h.Address.Socket.Port))] = h.Health.EDS
			}
		}
	}
	return out
}
