package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

var errWasm = errors.New("bench: malformed wasm")

// buildFloor compiles the yardstick into dir and returns its path.
func buildFloor(ctx context.Context, root, dir string) (string, error) {
	return buildWasm(ctx, root, dir, withFloor)
}

// buildEmpty compiles the plugin that does nothing into dir: with all callbacks, and with those alone that the module like
// has.
func buildEmpty(ctx context.Context, root, dir, like string) (all, same string, err error) {
	if all, err = buildWasm(ctx, root, dir, withEmpty); err != nil {
		return "", "", err
	}
	want, err := callbacks(like)
	if err != nil {
		return "", "", err
	}
	same = filepath.Join(dir, "empty-same.wasm")
	if err := keepCallbacks(all, same, want); err != nil {
		return "", "", err
	}
	return all, same, sameCallbacks(same, like)
}

// buildWasm compiles a folder of the benchmark.
func buildWasm(ctx context.Context, root, dir, folder string) (string, error) {
	out := filepath.Join(dir, folder+".wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w -buildid=", "-o", out, "./examples/envoy/bench/"+folder)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("bench: building %s: %w\n%s", folder, err, text)
	}
	return out, nil
}

// keepCallbacks writes a module that is another without some of its callbacks: all but those to keep get a name that no
// gateway knows. The code stays as it is, so what differs in cost is the gateway's calls.
func keepCallbacks(from, to string, keep []string) error {
	module, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	has, err := callbacks(from)
	if err != nil {
		return err
	}
	for _, name := range has {
		if slices.Contains(keep, name) {
			continue
		}
		// As it stands in the section of exports: its length, itself, then a function.
		entry := func(name string) []byte { return append(append([]byte{byte(len(name))}, name...), 0) }
		if bytes.Count(module, entry(name)) != 1 {
			return fmt.Errorf("bench: %s: not one export %s", filepath.Base(from), name)
		}
		module = bytes.Replace(module, entry(name), entry("spare_"+strings.TrimPrefix(name, "proxy_")), 1)
	}
	return os.WriteFile(to, module, 0o644)
}

// sameCallbacks reports how the proxy-wasm callbacks of two modules differ. A
// comparison is fair only between modules into which the gateway calls as often.
func sameCallbacks(a, b string) error {
	ca, err := callbacks(a)
	if err != nil {
		return err
	}
	cb, err := callbacks(b)
	if err != nil {
		return err
	}
	if !slices.Equal(ca, cb) {
		return fmt.Errorf("bench: callbacks differ: %s exports %s, %s exports %s",
			filepath.Base(a), strings.Join(ca, " "), filepath.Base(b), strings.Join(cb, " "))
	}
	return nil
}

// callbacks lists a module's exports that begin with proxy_, sorted.
func callbacks(name string) ([]string, error) {
	module, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	exports, err := exportNames(module)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	exports = slices.DeleteFunc(exports, func(s string) bool { return !strings.HasPrefix(s, "proxy_") })
	slices.Sort(exports)
	return exports, nil
}

// exportNames reads the export section (WebAssembly Core 5.5.10).
func exportNames(module []byte) ([]string, error) {
	if !bytes.HasPrefix(module, []byte("\x00asm\x01\x00\x00\x00")) {
		return nil, errWasm
	}
	const exportSection = 7
	for rest := module[8:]; len(rest) > 0; {
		id := rest[0]
		body, after, ok := vector(rest[1:])
		if !ok {
			return nil, errWasm
		}
		if rest = after; id != exportSection {
			continue
		}
		var names []string
		count, n := binary.Uvarint(body)
		if n <= 0 {
			return nil, errWasm
		}
		for body = body[n:]; count > 0; count-- {
			name, after, ok := vector(body)
			if !ok || len(after) < 2 {
				return nil, errWasm
			}
			names = append(names, string(name))
			_, n := binary.Uvarint(after[1:]) // one byte of kind, then an index
			if n <= 0 {
				return nil, errWasm
			}
			body = after[1+n:]
		}
		return names, nil
	}
	return nil, nil
}

// vector splits off bytes that a LEB128 length precedes.
func vector(b []byte) (head, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}
