package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// reloadBackoff is how soon a crashed worker is back: what every example configuration of Envoy asks for.
const reloadBackoff = 100 * time.Millisecond

// profileFlag finds the profile of a --profile flag.
func profileFlag(name string) (hostsim.Profile, error) {
	p, ok := hostsim.ProfileByName(name)
	if !ok {
		var names []string
		for _, p := range hostsim.Profiles() {
			names = append(names, p.Name)
		}
		return p, usagef("there is no profile %q: choose one of %s", name, strings.Join(names, ", "))
	}
	return p, nil
}

// readWasm reads a module; the error says how to get one.
func readWasm(path string) ([]byte, error) {
	wasm, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: name a compiled plugin, or build Pinwheel's by `make wasm` (dist/pinwheel.wasm)", err)
	}
	return wasm, err
}

// readConfig is what --config means: JSON itself, or the path of a file.
func readConfig(flag string) ([]byte, error) {
	if text := strings.TrimSpace(flag); text == "" || text[0] == '{' {
		return []byte(text), nil
	}
	return os.ReadFile(flag)
}

// withReplicas adds the addresses of simulated replicas to a configuration that says nothing about replicas: to an empty
// one, or a JSON object without any of replicas, pools and discovery. Others stay as they are, byte for byte.
func withReplicas(config []byte, addresses []string) []byte {
	fields := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(config)) > 0 && json.Unmarshal(config, &fields) != nil {
		return config
	}
	for _, key := range []string{"replicas", "pools", "discovery"} {
		if _, ok := fields[key]; ok {
			return config
		}
	}
	list, err := json.Marshal(addresses)
	if err != nil {
		return config
	}
	fields["replicas"] = list
	filled, err := json.Marshal(fields)
	if err != nil {
		return config
	}
	return filled
}

// startPlugin starts a host on the machine's own clock. What the plugin logs at level or
// above goes to stderr.
func startPlugin(ctx context.Context, c hostsim.Config, level hostsim.LogLevel, stderr io.Writer) (*hostsim.Host, error) {
	var mu sync.Mutex
	c.Clock = hostsim.NewRealClock()
	c.FailurePolicy, c.ReloadBackoff = hostsim.FailReload, reloadBackoff
	c.LogLimit = 1 // they are printed, not kept
	c.Log = func(e hostsim.LogEntry) {
		if e.Level < level {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(stderr, "%s plugin on %s: %s\n", e.Level, threadName(e.Worker), printable(e.Message))
	}
	h, err := hostsim.New(ctx, c)
	if errors.Is(err, hostsim.ErrRefused) {
		return nil, fmt.Errorf("%w; if it gave a reason, it stands above: correct --config", err)
	}
	return h, err
}

func threadName(worker int) string {
	switch worker {
	case hostsim.MainThread:
		return "main thread"
	case hostsim.Canary:
		return "canary"
	}
	return fmt.Sprintf("worker %d", worker)
}

// printable keeps a plugin's bytes from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
