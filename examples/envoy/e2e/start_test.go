package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// start brings up replicas and an Envoy whose configuration is examples/envoy's.
func start(k kind, version string) (*gateway, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	bin, err := wheel.Find(ctx, version)
	if err != nil {
		return nil, err
	}
	if k == discovered {
		return startDiscovered(ctx, bin)
	}
	g := &gateway{sessions: map[string]bool{}}
	port, err := envoytest.FreePort()
	if err != nil {
		return nil, err
	}
	g.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	g.client = newClient(g.addr)
	text, err := g.adapt(port)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pinwheel-e2e-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // Envoy reads its bootstrap once; LDS files live elsewhere
	if k != userFile {
		if text, err = g.split(k, text); err != nil {
			return nil, err
		}
	}
	bootstrap := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(bootstrap, []byte(text), 0o644); err != nil {
		return nil, err
	}
	g.envoy, err = envoytest.Start(ctx, envoytest.Options{Binary: bin, Bootstrap: bootstrap, Concurrency: 2})
	if err != nil {
		g.closeReplicas()
		return nil, err
	}
	return g, nil
}

// adapt opens the replicas and puts their addresses, free ports and the wasm's
// path in place of those of the user's file.
func (g *gateway) adapt(port int) (envoytest.Bootstrap, error) {
	root, err := envoytest.Root()
	if err != nil {
		return "", err
	}
	wasm, err := envoytest.Wasm(root)
	if err != nil {
		return "", err
	}
	text, err := envoytest.LoadBootstrap(filepath.Join(root, "examples", "envoy", "envoy.yaml"))
	if err != nil {
		return "", err
	}
	if text, err = text.Wasm(wasm); err != nil {
		return "", err
	}
	ports := [][2]int{{10000, port}, {9901, 0}}
	var addrs []string
	for i := range 3 {
		r, err := envoytest.OpenReplica("127.0.0.1:0")
		if err != nil {
			return "", err
		}
		g.replicas = append(g.replicas, r)
		addrs = append(addrs, r.Addr)
		_, p, _ := net.SplitHostPort(r.Addr)
		n, _ := strconv.Atoi(p)
		ports = append(ports, [2]int{8001 + i, n})
	}
	for _, p := range ports {
		if text, err = text.Port(p[0], p[1]); err != nil {
			return "", err
		}
	}
	return text.Plugin(func(c map[string]any) { c["replicas"] = addrs })
}

// split moves the listener into a file that update replaces.
func (g *gateway) split(k kind, text envoytest.Bootstrap) (envoytest.Bootstrap, error) {
	dir, err := os.MkdirTemp("", "pinwheel-lds-")
	if err != nil {
		return "", err
	}
	g.resources = filepath.Join(dir, "lds.yaml")
	if k == bareDoor {
		if text, err = text.Without("early_header_mutation_extensions:"); err != nil {
			return "", err
		}
	}
	g.render = func(edit func(map[string]any)) (string, error) {
		g.serial++
		edited, err := text.Plugin(edit)
		if err != nil {
			return "", err
		}
		// Envoy runs the plugin's configure callback once for each text it meets, and
		// answers a known one from memory.
		if !g.verbatim {
			if edited, err = edited.Respell(g.serial); err != nil {
				return "", err
			}
		}
		if edited, err = edited.DirectResponse(serialPath, strconv.Itoa(g.serial)); err != nil {
			return "", err
		}
		_, resources, err := edited.SplitListeners(g.resources)
		return resources, err
	}
	rest, resources, err := text.SplitListeners(g.resources)
	if err != nil {
		return "", err
	}
	return rest, os.WriteFile(g.resources, []byte(resources), 0o644)
}
