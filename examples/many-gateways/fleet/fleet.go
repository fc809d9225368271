// Package fleet runs several gateways of examples/many-gateways before the same replicas, and sends them sessions.
package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// Folder is that of the example, from the root of the checkout.
const Folder = "examples/many-gateways"

// Ports are a gateway's: of the listener and of the admin interface. 0 is any that is free.
type Ports struct{ Listener, Admin int }

// Options say what to start.
type Options struct {
	// Binary is the path of Envoy; required.
	Binary string
	// Root is that of the checkout; required. Its dist/pinwheel.wasm runs.
	Root string
	// Gateways has one entry for each gateway.
	Gateways []Ports
	// Workers is the number of each gateway's worker threads; 0 is 2.
	Workers int
	// Replicas are 127.0.0.1:PORT each.
	Replicas []string
	// Etcd are the addresses of its members. None: the gateways do not agree.
	Etcd []string
	// Plugin edits the plugin's configuration; nil changes nothing.
	Plugin func(map[string]any)
	// Edit changes the whole bootstrap, last; nil changes nothing.
	Edit func(envoytest.Bootstrap) (envoytest.Bootstrap, error)
}

// Fleet are running gateways.
type Fleet struct {
	Gateways []*Gateway

	dir string
}

// Start brings up all gateways at once. It returns when all are ready.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	wasm, err := envoytest.Wasm(o.Root)
	if err != nil {
		return nil, err
	}
	text, err := envoytest.LoadBootstrap(filepath.Join(o.Root, Folder, "envoy.yaml"))
	if err != nil {
		return nil, err
	}
	if text, err = text.Wasm(wasm); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pinwheel-many-")
	if err != nil {
		return nil, err
	}
	f := &Fleet{Gateways: make([]*Gateway, len(o.Gateways)), dir: dir}
	failed := make([]error, len(o.Gateways))
	var all sync.WaitGroup
	for i, ports := range o.Gateways {
		all.Go(func() {
			f.Gateways[i], failed[i] = o.start(ctx, text, ports, filepath.Join(dir, fmt.Sprintf("gateway-%d.yaml", i)))
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		f.Stop()
		return nil, err
	}
	return f, nil
}

// Stop ends all gateways.
func (f *Fleet) Stop() {
	var all sync.WaitGroup
	for _, g := range f.Gateways {
		if g != nil {
			all.Go(g.Envoy.Stop)
		}
	}
	all.Wait()
	os.RemoveAll(f.dir)
}

func (o Options) start(ctx context.Context, text envoytest.Bootstrap, ports Ports, file string) (*Gateway, error) {
	if ports.Listener == 0 {
		var err error
		if ports.Listener, err = envoytest.FreePort(); err != nil {
			return nil, err
		}
	}
	text, err := o.bootstrap(text, ports)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	workers := o.Workers
	if workers == 0 {
		workers = 2
	}
	envoy, err := envoytest.Start(ctx, envoytest.Options{Binary: o.Binary, Bootstrap: file, Concurrency: workers})
	if err != nil {
		return nil, err
	}
	return New(net.JoinHostPort("127.0.0.1", strconv.Itoa(ports.Listener)), envoy), nil
}

// bootstrap is the example's file with these ports, replicas and members of etcd.
func (o Options) bootstrap(text envoytest.Bootstrap, ports Ports) (envoytest.Bootstrap, error) {
	text, err := text.Before(o.Replicas, ports.Listener)
	if err == nil {
		text, err = text.Port(0, ports.Admin)
	}
	if err == nil {
		text, err = text.Plugin(func(c map[string]any) {
			if len(o.Etcd) == 0 {
				delete(c, "agreement")
			}
			if o.Plugin != nil {
				o.Plugin(c)
			}
		})
	}
	if err == nil && len(o.Etcd) > 0 {
		text, err = members(text, o.Etcd)
	}
	if err == nil && o.Edit != nil {
		text, err = o.Edit(text)
	}
	return text, err
}

// members makes the cluster etcd one of these addresses: its one endpoint's line is repeated.
func members(text envoytest.Bootstrap, addresses []string) (envoytest.Bootstrap, error) {
	all, found := "", 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "- endpoint: ") {
			all += line
			continue
		}
		found++
		for _, a := range addresses {
			host, port, err := net.SplitHostPort(a)
			if err != nil {
				return "", err
			}
			all += strings.NewReplacer("address: 127.0.0.1,", "address: "+host+",", "port_value: 2379}", "port_value: "+port+"}").Replace(line)
		}
	}
	if found != 1 {
		return "", fmt.Errorf("%w: %d endpoints of etcd, want one", envoytest.ErrBootstrap, found)
	}
	return envoytest.Bootstrap(all), nil
}

// Agreement is the plugin's configuration of that name, for Options.Plugin to edit.
func Agreement(c map[string]any) map[string]any {
	a, _ := c["agreement"].(map[string]any)
	return a
}

// Status is what a gateway tells of itself.
type Status struct {
	Pools []struct {
		Agreement struct {
			Kind, State, Breaker string
			DegradedMS           int `json:"degraded_ms"`
			PolledMS             int `json:"polled_ms"`
		}
		Replicas []struct {
			envoytest.Standing
			FleetSessions int `json:"fleet_sessions"`
		}
	}
}

// Status asks for it.
func (g *Gateway) Status(ctx context.Context) (s Status, err error) {
	body, err := g.get(ctx, "/pinwheel/status")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	return s, err
}
