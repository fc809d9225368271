package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

const (
	adminSecret = "soak"
	// serialPath tells which configuration a connection is under. Envoy answers it itself; the plugin sees it as a request
	// without a session.
	serialPath = "/config-serial"
	// patience bounds every wait for something that Envoy or the plugin does later: seconds, but for a soak that runs behind
	// everybody else on a busy machine.
	patience = 30 * time.Minute
	pause    = 20 * time.Millisecond // between two looks
)

// gateway is a stock Envoy on examples/envoy/envoy.yaml with its listener in a file, before replicas in this process.
type gateway struct {
	settings settings
	dir      string // of its files
	version  string // of Envoy
	digest   string // SHA-256 of dist/pinwheel.wasm
	envoy    *envoytest.Envoy
	addr     string // of the listener
	replicas []*replica
	http     *http.Client // a connection for each request
	// probes counts the requests without a session that the gateway answered to this type itself, and not to the load.
	probes atomic.Uint64
	// failed counts those that were not answered, in a crash.
	failed atomic.Uint64

	text      envoytest.Bootstrap
	resources string // the listener's file
	serial    int
	config    map[string]any // what the present configuration adds to the common one
}

// startGateway opens the replicas and starts Envoy before them. Stop it.
func startGateway(ctx context.Context, s settings) (g *gateway, err error) {
	root, err := envoytest.Root()
	if err != nil {
		return nil, err
	}
	bin, err := wheel.Find(ctx, s.Version)
	if err != nil {
		return nil, err
	}
	shipped, err := envoytest.Wasm(root)
	if err != nil {
		return nil, err
	}
	code, err := os.ReadFile(shipped)
	if err != nil {
		return nil, err
	}
	g = &gateway{settings: s, digest: fmt.Sprintf("%x", sha256.Sum256(code)), http: &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}}
	if g.dir, err = os.MkdirTemp("", "pinwheel-soak-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			g.stop()
		}
	}()
	module := shipped
	if s.Crashes {
		if code, err = guard(code); err != nil {
			return g, err
		}
		module = filepath.Join(g.dir, "guarded.wasm")
		if err = os.WriteFile(module, code, 0o644); err != nil {
			return g, err
		}
	}
	var addrs []string
	for i := range s.Replicas {
		port, err := envoytest.FreePort()
		if err != nil {
			return g, err
		}
		r, err := openReplica(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), i)
		if err != nil {
			return g, err
		}
		g.replicas, addrs = append(g.replicas, r), append(addrs, r.addr)
	}
	bootstrap, err := g.write(filepath.Join(root, "examples", "envoy", "envoy.yaml"), module, addrs)
	if err != nil {
		return g, err
	}
	g.envoy, err = envoytest.Start(ctx, envoytest.Options{Binary: bin, Bootstrap: bootstrap, Concurrency: s.Workers,
		DrainTime: s.Drain, ReadyTimeout: patience})
	if err != nil {
		return g, err
	}
	g.version, err = g.serverVersion(ctx)
	return g, err
}

// write writes the bootstrap, whose name it returns, and the first configuration.
func (g *gateway) write(userFile, module string, addrs []string) (bootstrap string, err error) {
	port, err := envoytest.FreePort()
	if err != nil {
		return "", err
	}
	g.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	text, err := envoytest.LoadBootstrap(userFile)
	if err == nil {
		text, err = text.Before(addrs, port)
	}
	if err == nil {
		text, err = text.Wasm(module)
	}
	if err == nil { // on a machine that stands still for a second a replica would look dead
		text, err = text.ConnectTimeout(patience)
	}
	if err != nil {
		return "", err
	}
	g.text, g.resources = text, filepath.Join(g.dir, "lds.yaml")
	rest, _, err := text.SplitListeners(g.resources)
	if err != nil {
		return "", err
	}
	g.config = map[string]any{}
	if err := g.render(); err != nil {
		return "", err
	}
	bootstrap = filepath.Join(g.dir, "envoy.yaml")
	return bootstrap, os.WriteFile(bootstrap, []byte(rest), 0o644)
}

// render puts the configuration, under a new serial number, where Envoy finds it.
func (g *gateway) render() error {
	g.serial++
	text, err := g.text.Plugin(func(c map[string]any) {
		c["admin"] = map[string]any{"secret": adminSecret}
		c["session"] = map[string]any{"idle_timeout": g.settings.IdleTimeout.String()}
		c["health"] = map[string]any{"cooldown": "500ms", "max_cooldown": "1s"}
		for key, value := range g.config {
			c[key] = value
		}
	})
	if err == nil {
		// Envoy configures a text that it knows from memory, so each is another one.
		text, err = text.Respell(g.serial)
	}
	if err == nil {
		text, err = text.DirectResponse(serialPath, strconv.Itoa(g.serial))
	}
	if err != nil {
		return err
	}
	_, resources, err := text.SplitListeners(g.resources)
	if err != nil {
		return err
	}
	return envoytest.Replace(g.resources, resources)
}

// update replaces the configuration and returns once both workers have it.
func (g *gateway) update(ctx context.Context) error {
	const accepted, rejected = "listener_manager.lds.update_success", "listener_manager.lds.update_rejected"
	count := func() (envoytest.Stats, error) { return g.envoy.Admin.Stats(ctx, `^listener_manager\.lds\.update_`) }
	before, err := count()
	if err != nil {
		return err
	}
	if err := g.render(); err != nil {
		return err
	}
	err = eventually(ctx, "Envoy to take an update", func() (bool, error) {
		now, err := count()
		if err == nil && now[rejected] > before[rejected] {
			return false, fmt.Errorf("soak: update rejected: %s", g.envoy.Log.Tail(5))
		}
		return now[accepted] > before[accepted], err
	})
	if err != nil {
		return err
	}
	return g.serves(ctx)
}

// serves waits until twenty new connections in a row are under the present configuration.
func (g *gateway) serves(ctx context.Context) error {
	return eventually(ctx, "new connections under the new configuration", func() (bool, error) {
		for range 20 {
			if !g.probe(ctx) {
				return false, nil
			}
		}
		return true, nil
	})
}

// probe asks for the serial number over a new connection and reports whether it is the present one.
func (g *gateway) probe(ctx context.Context) bool {
	status, body, err := g.ask(ctx, http.MethodGet, serialPath)
	if err == nil && status == http.StatusOK {
		g.probes.Add(1)
	} else {
		g.failed.Add(1)
	}
	return err == nil && status == http.StatusOK && body == strconv.Itoa(g.serial)
}

// ask sends one request to the listener over a connection of its own.
func (g *gateway) ask(ctx context.Context, method, path string, header ...string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+g.addr+path, nil)
	if err != nil {
		return 0, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := g.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// order is an operator's request, repeated until the plugin has answered it.
func (g *gateway) order(ctx context.Context, method, rest string) (body string, err error) {
	err = eventually(ctx, "an answer to "+rest, func() (bool, error) {
		var status int
		var err error
		status, body, err = g.ask(ctx, method, "/pinwheel"+rest, "x-pinwheel-secret", adminSecret)
		if err == nil && status >= 400 && status < 500 {
			return false, fmt.Errorf("soak: %s: %d %s", rest, status, body)
		}
		return err == nil && status == http.StatusOK, nil
	})
	return body, err
}

// status returns what the plugin tells of its replicas, one line for each that it knows. An address may stand there twice:
// a removed replica stays until its sessions are gone.
func (g *gateway) status(ctx context.Context) (list []envoytest.Standing, err error) {
	body, err := g.order(ctx, http.MethodGet, "/status")
	if err != nil {
		return nil, err
	}
	var s envoytest.Status
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		return nil, fmt.Errorf("soak: status %q: %w", body, err)
	}
	for _, p := range s.Pools {
		list = append(list, p.Replicas...)
	}
	return list, nil
}

// member returns the standing of the replica at that position, which is a member.
func (g *gateway) member(ctx context.Context, position int) (envoytest.Standing, error) {
	list, err := g.status(ctx)
	for _, s := range list {
		if s.Address == g.replicas[position].addr && s.State != "removed" {
			return s, err
		}
	}
	return envoytest.Standing{}, err
}

// counters are the plugin's, by name without what is common to all.
func (g *gateway) counters(ctx context.Context) (envoytest.Stats, error) {
	const prefix = "wasmcustom.pinwheel_"
	all, err := g.envoy.Admin.Stats(ctx, `^wasmcustom\.pinwheel_`)
	out := envoytest.Stats{}
	for name, n := range all {
		out[strings.TrimPrefix(name, prefix)] = n
	}
	return out, err
}

// decisions adds up the requests that the plugin reports, by reason, over all policies.
func decisions(counters envoytest.Stats) map[string]uint64 {
	out := map[string]uint64{}
	for name, n := range counters {
		if _, reason, ok := strings.Cut(name, ".reason."); ok && strings.HasPrefix(name, "decisions_total.") {
			out[reason] += n
		}
	}
	return out
}

func sum(counts map[string]uint64) (n uint64) {
	for _, v := range counts {
		n += v
	}
	return n
}

// reloads counts the VMs that Envoy made in place of one that trapped.
func (g *gateway) reloads(ctx context.Context) (n uint64, err error) {
	stats, err := g.envoy.Admin.Stats(ctx, `vm_reload_success$`)
	for _, v := range stats {
		n += v
	}
	return n, err
}

func (g *gateway) serverVersion(ctx context.Context) (string, error) {
	text, err := g.envoy.Admin.Get(ctx, "/server_info")
	if err != nil {
		return "", err
	}
	var info struct{ Version string } // COMMIT/1.40.0/Clean/RELEASE/BoringSSL
	if err := json.NewDecoder(bytes.NewBufferString(text)).Decode(&info); err != nil {
		return "", err
	}
	if parts := strings.Split(info.Version, "/"); len(parts) > 1 {
		return parts[1], nil
	}
	return info.Version, nil
}

// stop ends Envoy and the replicas, and removes the files.
func (g *gateway) stop() {
	if g.envoy != nil {
		g.envoy.Stop()
	}
	for _, r := range g.replicas {
		r.kill()
	}
	os.RemoveAll(g.dir)
}

// eventually looks until f reports true, an error, or patience is over.
func eventually(ctx context.Context, what string, f func() (bool, error)) error {
	return within(ctx, patience, what, f)
}

func within(ctx context.Context, patience time.Duration, what string, f func() (bool, error)) error {
	deadline := time.Now().Add(patience)
	for {
		ok, err := f()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("soak: waited %v in vain for %s", patience, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
