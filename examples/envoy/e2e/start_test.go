package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// file is the configuration in examples/envoy that gateways of the kind run.
func (k kind) file() string {
	switch k {
	case statefulSession, defaultStatus:
		return "stateful-session.yaml"
	case originalDst:
		return "original-dst.yaml"
	}
	return "envoy.yaml"
}

// isCarrier reports whether gateways of the kind have offPath, and their endpoints
// in a file.
func (k kind) isCarrier() bool {
	return k == overrideHost || k == statefulSession || k == originalDst || k == defaultStatus
}

// start brings up replicas and an Envoy whose configuration is examples/envoy's.
func start(k kind, version string) (*gateway, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	bin, err := wheel.Find(ctx, version)
	if err != nil {
		return nil, err
	}
	if k == discovered {
		return startDiscovered(ctx, bin, nil)
	}
	g := &gateway{sessions: map[string]bool{}, crashes: k == crashing}
	port, err := envoytest.FreePort()
	if err != nil {
		return nil, err
	}
	g.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	g.client = newClient(g.addr)
	text, err := g.adapt(k, port)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pinwheel-e2e-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // Envoy reads its bootstrap once; LDS files live elsewhere
	switch k {
	case userFile:
	case readsBodies, noFlag, tightBuffers, readsPrompts:
		text, err = readBodies(k, text)
	default:
		text, err = g.split(k, text)
	}
	if err != nil {
		return nil, err
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
func (g *gateway) adapt(k kind, port int) (envoytest.Bootstrap, error) {
	root, err := envoytest.Root()
	if err != nil {
		return "", err
	}
	wasm, err := envoytest.Wasm(root)
	if err != nil {
		return "", err
	}
	text, err := envoytest.LoadBootstrap(filepath.Join(root, "examples", "envoy", k.file()))
	if err != nil {
		return "", err
	}
	if k == crashing {
		if wasm, err = crashingWasm(root); err != nil {
			return "", err
		}
	}
	if text, err = text.Wasm(wasm); err != nil {
		return "", err
	}
	ports := [][2]int{{10000, port}, {9901, 0}}
	n, members := 3, 3
	if k == fleet {
		n, members = 8, 4
		if text, err = text.Endpoints(8001, n); err != nil {
			return "", err
		}
	}
	var addrs []string
	for i := range n {
		r, err := envoytest.OpenReplica("127.0.0.1:0")
		if err != nil {
			return "", err
		}
		g.replicas = append(g.replicas, r)
		addrs = append(addrs, r.Addr)
		_, p, _ := net.SplitHostPort(r.Addr)
		n, _ := strconv.Atoi(p)
		if k != originalDst { // whose cluster lists no endpoints
			ports = append(ports, [2]int{8001 + i, n})
		}
	}
	for _, p := range ports {
		if text, err = text.Port(p[0], p[1]); err != nil {
			return "", err
		}
	}
	return text.Plugin(func(c map[string]any) { c["replicas"] = addrs[:members] })
}

// readBodies has the plugin ask bodies for the session, or for the prompt.
func readBodies(k kind, text envoytest.Bootstrap) (envoytest.Bootstrap, error) {
	text, err := text.Plugin(func(c map[string]any) {
		if k == readsPrompts {
			c["policy"] = "cache_aware"
			return
		}
		c["session"] = map[string]any{"body": []string{"metadata.session_id", "user"}}
	})
	if err == nil && k != noFlag {
		text, err = text.ShowBodies()
	}
	if err == nil && k == tightBuffers {
		text, err = text.BufferLimit(32 << 10)
	}
	return text, err
}

// split moves the listener, and a carrier's endpoints, into files that tests
// replace.
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
	if k == defaultStatus {
		if text, err = text.Without("common_lb_config: {override_host_status: {statuses: [UNKNOWN, HEALTHY, DEGRADED, DRAINING]}}"); err != nil {
			return "", err
		}
	}
	if k.isCarrier() {
		if text, err = text.PluginOff(offPath); err != nil {
			return "", err
		}
	}
	if k.isCarrier() && k != originalDst {
		g.endpoints = filepath.Join(dir, "eds.yaml")
		if text, err = text.FileEndpoints(g.endpoints); err != nil {
			return "", err
		}
		if err = os.WriteFile(g.endpoints, []byte(g.assignment(nil)), 0o644); err != nil {
			return "", err
		}
	}
	g.render = func(edit func(map[string]any)) (string, error) {
		g.serial++
		edited, err := text.Plugin(edit)
		if err != nil {
			return "", err
		}
		if g.altered != nil {
			if edited, err = g.altered(edited); err != nil {
				return "", err
			}
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
	rest = "layered_runtime: {layers: [{name: admin, admin_layer: {}}]}\n" + rest // for setRuntime
	return rest, os.WriteFile(g.resources, []byte(resources), 0o644)
}

// crashingWasm builds the plugin so that a request with the header
// x-pinwheel-inject: trap ends its VM.
var crashingWasm = func() func(root string) (string, error) {
	var once sync.Once
	var name string
	var failed error
	return func(root string) (string, error) {
		once.Do(func() {
			name = filepath.Join(root, "dist", "pinwheel-inject.wasm")
			build := exec.Command("go", "build", "-tags", "pinwheel_inject", "-buildmode=c-shared", "-o", name, "./plugin/wasm")
			build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=wasip1", "GOARCH=wasm")
			if text, err := build.CombinedOutput(); err != nil {
				failed = fmt.Errorf("%v: %w\n%s", build.Args, err, text)
			}
		})
		return name, failed
	}
}()
