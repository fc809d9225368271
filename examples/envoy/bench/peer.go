package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/vllmrouter/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The peers are the other two places for the same decision: a process that Envoy asks about each request (extproc/), and a
// router behind Envoy that all requests go through (vllm-router). Each makes a gateway of two processes, of which both count.

// process is one that runs beside Envoy.
type process struct {
	pid  int
	addr string // that Envoy connects to: HOST:PORT or unix:PATH
	stop func() // and wait for its end; may be called again
}

// patience bounds the start of a peer, not what is measured.
const patience = 2 * time.Minute

// startProcess runs cmd and keeps what it prints in log. exited is closed after its end.
func startProcess(cmd *exec.Cmd, log *envoytest.Log) (p process, exited chan struct{}, err error) {
	exited = make(chan struct{})
	if cmd.Stderr = log; cmd.Stdout == nil {
		cmd.Stdout = log
	}
	if err := envoytest.RunTied(cmd, exited); err != nil {
		return process{}, nil, fmt.Errorf("bench: starting %s: %w", filepath.Base(cmd.Path), err)
	}
	return process{pid: cmd.Process.Pid, stop: func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
	}}, exited, nil
}

// startPicker builds extproc into dir and starts it on a Unix socket there.
func startPicker(ctx context.Context, root, dir string, replicas []string) (process, error) {
	binary := filepath.Join(dir, "extproc")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", binary, ".")
	build.Dir, build.Env = filepath.Join(root, "examples", "envoy", "bench", "extproc"), append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		return process{}, fmt.Errorf("bench: building extproc: %w\n%s", err, text)
	}
	_ = os.Remove(binary + ".sock") // of one before
	cmd := exec.Command(binary, "--listen", "unix:"+binary+".sock", "--replicas", strings.Join(replicas, ","))
	r, w, err := os.Pipe()
	if err != nil {
		return process{}, err
	}
	defer r.Close()
	cmd.Stdout = w
	log := &envoytest.Log{}
	p, _, err := startProcess(cmd, log)
	w.Close()
	if err != nil {
		return process{}, err
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		p.stop()
		return process{}, fmt.Errorf("bench: extproc has ended: %s", log.Tail(5))
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

// startRouter starts vllm-router with its own defaults and waits until it knows that all replicas are well. Of its log only
// errors are printed: a line for each new session would be work that nobody else does.
func startRouter(ctx context.Context, replicas []string) (process, error) {
	var ports [2]string
	for i := range ports {
		port, err := envoytest.FreePort()
		if err != nil {
			return process{}, err
		}
		ports[i] = strconv.Itoa(port)
	}
	flags := []string{"--port", ports[0], "--prometheus-port", ports[1], "--policy", "sticky_least_loaded", "--log-level", "error",
		"--worker-startup-check-interval", "1", "--worker-urls"}
	for _, r := range replicas {
		flags = append(flags, "http://"+r)
	}
	cmd, err := wheel.Command(ctx, flags...)
	if err != nil {
		return process{}, err
	}
	log := &envoytest.Log{}
	p, exited, err := startProcess(cmd, log)
	if err != nil {
		return process{}, err
	}
	p.addr = net.JoinHostPort("127.0.0.1", ports[0])
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		healthy, err := healthyWorkers(ctx, p.addr)
		if err == nil && healthy == len(replicas) {
			return p, nil
		}
		if err == nil {
			err = fmt.Errorf("%d of %d replicas are well", healthy, len(replicas))
		}
		select {
		case <-tick.C:
			continue
		case <-exited:
			err = errors.New("it has ended")
		case <-ctx.Done():
		}
		p.stop()
		return process{}, fmt.Errorf("bench: vllm-router is not ready: %w\n%s", err, log.Tail(20))
	}
}

// healthyWorkers is the number of replicas that the router finds well.
func healthyWorkers(ctx context.Context, router string) (n int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+router+"/workers", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var list struct {
		Workers []struct {
			Healthy bool `json:"is_healthy"`
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return 0, fmt.Errorf("bench: /workers of vllm-router: %w", err)
	}
	for _, w := range list.Workers {
		if w.Healthy {
			n++
		}
	}
	return n, nil
}

// extProcBootstrap lets the picker decide, in an envoy.yaml without Pinwheel. Envoy sends it the session header and nothing
// else, and waits for one message: the protocol does not go with less. Over loopback TCP the same costs as much as over the Unix
// socket, within noise.
func extProcBootstrap(text envoytest.Bootstrap, picker string) (envoytest.Bootstrap, error) {
	path, ok := strings.CutPrefix(picker, "unix:")
	if !ok {
		return "", fmt.Errorf("%w: picker at %s, want unix:PATH", envoytest.ErrBootstrap, picker)
	}
	const (
		router = "          - name: envoy.filters.http.router\n"
		filter = `          - name: picker
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor
              grpc_service: {envoy_grpc: {cluster_name: picker}}
              message_timeout: 60s   # the default, 0.2 s, fails requests on a busy machine
              processing_mode: {request_header_mode: SEND, response_header_mode: SKIP, request_body_mode: NONE,
                response_body_mode: NONE, request_trailer_mode: SKIP, response_trailer_mode: SKIP}
              forward_rules: {allowed_headers: {patterns: [{exact: x-session-id}]}}
`
		clusters = "  clusters:\n"
		cluster  = `  - name: picker
    type: STATIC
    connect_timeout: 1s
    circuit_breakers: {thresholds: [{max_connections: 100000, max_pending_requests: 100000, max_requests: 100000}]}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment: {cluster_name: picker, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: %q}}}}]}]}
`
	)
	text, err := insert(text, router, filter+router)
	if err != nil {
		return "", err
	}
	return insert(text, clusters, clusters+fmt.Sprintf(cluster, path))
}

// routerBootstrap takes out of an envoy.yaml without Pinwheel what is there for a plugin's sake. It then has nothing to
// decide, if the router is its one upstream host.
func routerBootstrap(text envoytest.Bootstrap) (envoytest.Bootstrap, error) {
	for _, key := range []string{"early_header_mutation_extensions:", "load_balancing_policy:", "typed_extension_protocol_options:"} {
		var err error
		if text, err = text.Without(key); err != nil {
			return "", err
		}
	}
	return text, nil
}

// insert replaces a text that must occur exactly once.
func insert(text envoytest.Bootstrap, from, to string) (envoytest.Bootstrap, error) {
	if n := strings.Count(string(text), from); n != 1 {
		return "", fmt.Errorf("%w: %d times %q, want once", envoytest.ErrBootstrap, n, from)
	}
	return envoytest.Bootstrap(strings.Replace(string(text), from, to, 1)), nil
}
