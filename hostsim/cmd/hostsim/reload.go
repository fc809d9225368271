package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
)

// pluginFiles are the plugin's module and configuration as files have them.
type pluginFiles struct {
	flags    *serveFlags
	sim      []string // addresses of simulated replicas
	clusters []gateway.Cluster
	wasm     []byte
	config   []byte
}

// read reads both files and checks what can be checked without the plugin.
func (p *pluginFiles) read() (err error) {
	if p.config, err = readConfig(p.flags.config); err != nil {
		return fmt.Errorf("--config: %w (a file, or JSON that begins with {; --config-text takes any text)", err)
	}
	if p.flags.configText != "" {
		p.config = []byte(p.flags.configText)
	}
	if len(p.sim) > 0 {
		p.config = withReplicas(p.config, p.sim, p.flags.operation.page != "" || p.flags.operation.accessLog != "")
	}
	if err := checkReplicas(p.config, p.clusters); err != nil || p.flags.wasm == "" {
		return err
	}
	p.wasm, err = readWasm(p.flags.wasm)
	return err
}

// update puts what has changed in force. After an error all is as it was, unless the error names a worker: that one then
// has the old.
func (p *pluginFiles) update(ctx context.Context, host *hostsim.Host) (changed bool, err error) {
	if host == nil {
		return false, nil
	}
	next := *p
	if err := next.read(); err != nil {
		return false, err
	}
	if bytes.Equal(next.wasm, p.wasm) && bytes.Equal(next.config, p.config) {
		return false, nil
	}
	if err := host.Update(ctx, hostsim.Update{Wasm: next.wasm, PluginConfig: next.config}); err != nil {
		return false, err
	}
	host.Drain() // requests that run keep what they began under
	*p = next
	return true, nil
}

// catchHangups has SIGHUP wait from here on, for it ends a process that does not catch it.
func catchHangups() (hangups chan os.Signal, release func()) {
	hangups = make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups, func() { signal.Stop(hangups) }
}

// reloadOnHangup reloads at each signal until ctx ends; the channel that it returns is closed when no reload runs any more. A
// terminal that is closed sends SIGHUP too: stop is called when there is nobody left to tell.
func reloadOnHangup(ctx context.Context, hangups <-chan os.Signal, p *pluginFiles, host *hostsim.Host, log *accessLog, stderr io.Writer, stop func()) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-hangups:
				if _, err := fmt.Fprintln(stderr, reload(ctx, p, host, log)); err != nil {
					stop()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return over
}

// reload does what SIGHUP asks for and says in one line what came of it.
func reload(ctx context.Context, p *pluginFiles, host *hostsim.Host, log *accessLog) string {
	done := "hostsim: reloaded"
	if log != nil {
		if err := log.reopen(); err != nil {
			return fmt.Sprintf("hostsim: not reloaded: %v; the old file stays in use", err)
		}
		done += ", access log opened again"
	}
	changed, err := p.update(ctx, host)
	switch {
	case errors.Is(err, hostsim.ErrRefused):
		return "hostsim: not reloaded: the plugin refused the configuration; if it gave a reason, it stands above; the old one stays in force"
	case err != nil:
		line, _, _ := strings.Cut(err.Error(), "\n") // of a trap, the stack stands above
		return fmt.Sprintf("hostsim: not reloaded: %s; what was in force stays", strings.TrimPrefix(line, "hostsim: "))
	case changed:
		return done + ", plugin and configuration as the files have them now"
	}
	return done + ", plugin and configuration have not changed"
}
