//go:build peer

package vllmrouter

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// pinwheel is the shipped plugin in the embedded gateway, with two workers.
type pinwheel struct {
	router
	t    *testing.T
	host *hosttest.Host
	// extra is what the configuration has besides replicas.
	extra map[string]any
}

// startPinwheel starts it with all replicas in the gateway's cluster and the members in the plugin's configuration.
func startPinwheel(t *testing.T, replicas []*replica, members []string, extra map[string]any) *pinwheel {
	t.Helper()
	p := &pinwheel{t: t, extra: extra}
	all := map[string]bool{}
	for _, m := range members {
		all[m] = true
	}
	const workers = 2
	p.host = hosttest.New(t, hosttest.Options{Wasm: "../../dist/pinwheel.wasm", Build: "make wasm", Workers: workers, Config: p.config(all),
		Adjust: func(c *hostsim.Config) { c.LogLevel = hostsim.LogInfo }})
	g, err := gateway.New(gateway.Config{Host: p.host.Host, Clusters: []gateway.Cluster{{Name: "vllm", Hosts: addresses(replicas)}}})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	p.router = newRouter(t, "http://"+ln.Addr().String(), workers)
	return p
}

// set makes the members, and which of them are healthy, what they are in want.
func (p *pinwheel) set(want map[string]bool) {
	p.t.Helper()
	if err := p.host.Reconfigure([]byte(p.config(want))); err != nil {
		p.t.Fatal(err)
	}
	p.host.Drain() // no request is under way
}

func (p *pinwheel) config(members map[string]bool) string {
	type member struct {
		Address string `json:"address"`
		State   string `json:"state"`
	}
	list := []member{}
	for address, healthy := range members {
		state := "active"
		if !healthy {
			state = "unhealthy"
		}
		list = append(list, member{address, state})
	}
	slices.SortFunc(list, func(a, b member) int { return slices.Compare([]byte(a.Address), []byte(b.Address)) })
	c := map[string]any{"replicas": list}
	for k, v := range p.extra {
		c[k] = v
	}
	text, err := json.Marshal(c)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// open returns what the plugin itself counts on a replica: its metric, after the tick that sets it.
func (p *pinwheel) open(address string) int {
	return int(p.host.Metric("pinwheel_sessions.pool.default.replica." + address))
}

// tick lets ticks pass until metrics are up to date: after a new configuration, they come from the old one's worker
// until its lease has run out.
func (p *pinwheel) tick() { p.host.Advance(10 * time.Second) }
