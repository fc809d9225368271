package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/suite"
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
	wasm, err := suite.ReadFile(path, suite.MaxModule)
	if errors.Is(err, os.ErrNotExist) {
		if filepath.Base(path) == "pinwheel.wasm" {
			return nil, fmt.Errorf("%w: build it by `make wasm`, or name another plugin", err)
		}
		return nil, fmt.Errorf("%w: name a compiled plugin", err)
	}
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm")) {
		return nil, notWasm(path, "invalid magic number")
	}
	return wasm, nil
}

// notWasm is the error about a file that is no module.
func notWasm(path, why string) error {
	return fmt.Errorf("%s is not a WebAssembly module (%s): name a .wasm file", path, why)
}

// readConfig is what --config means: JSON itself, or the path of a file.
func readConfig(flag string) ([]byte, error) {
	if text := strings.TrimSpace(flag); text == "" || text[0] == '{' {
		return []byte(text), nil
	}
	return suite.ReadFile(flag, suite.MaxSize)
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
		fmt.Fprintf(stderr, "%s plugin on %s: %s\n", e.Level, hostsim.ThreadName(e.Worker), printable(e.Message))
	}
	h, err := hostsim.New(ctx, c)
	if errors.Is(err, hostsim.ErrRefused) {
		return nil, fmt.Errorf("%w; if it gave a reason, it stands above: correct --config", err)
	}
	if errors.Is(err, hostsim.ErrTrap) {
		line, _, _ := strings.Cut(err.Error(), "\n") // the stack stands above
		return nil, fmt.Errorf("%s; if it gave a reason, it stands above: correct --config or --root-id", line)
	}
	return h, err
}

// printable keeps a plugin's bytes from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
