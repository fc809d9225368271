package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is one that a binary is built from.
type module struct {
	Path, Version, Dir string
	// Sum is go.sum's, empty for the main module and for Go itself.
	Sum  string
	Main bool
}

// purl is https://github.com/package-url/purl-spec.
func (m module) purl() string { return "pkg:golang/" + m.Path + "@" + m.Version }

// dirHash is the sum as in-toto writes it: https://github.com/in-toto/attestation/blob/main/spec/v1/digest_set.md
func (m module) dirHash() (string, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(raw) != 32 {
		return "", fmt.Errorf("%s: the sum %q is not of go.sum's kind", m.Path, m.Sum)
	}
	return hex.EncodeToString(raw), nil
}

// modulesOf asks Go which modules a main package is built from on one of the platforms, in order of their paths, Go's own
// library (std) among them and the checkout's module not.
func modulesOf(pkg string, platforms ...string) ([]module, error) {
	found := map[string]module{}
	for _, platform := range platforms {
		system, processor, ok := strings.Cut(platform, "-")
		if !ok {
			return nil, fmt.Errorf("%q is no platform: SYSTEM-PROCESSOR, such as linux-amd64", platform)
		}
		out, err := goTool([]string{"GOOS=" + system, "GOARCH=" + processor, "CGO_ENABLED=0"}, "list", "-deps", "-json=Module", pkg)
		if err != nil {
			return nil, err
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct{ Module *module }
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("go list %s: %w", pkg, err)
			}
			if p.Module != nil && !p.Module.Main {
				found[p.Module.Path] = *p.Module
			}
		}
	}
	out, err := goTool(nil, "env", "GOVERSION", "GOROOT")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(out), "\n")
	found["std"] = module{Path: "std", Version: strings.TrimPrefix(lines[0], "go"), Dir: lines[1]}
	return slices.SortedFunc(maps.Values(found), func(a, b module) int { return strings.Compare(a.Path, b.Path) }), nil
}

func goTool(env []string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// licences is the text that the binaries' licences ask to go with them: the project's own, and each module's files.
func licences(modules []module) ([]byte, error) {
	var b bytes.Buffer
	for _, m := range append([]module{{Path: "pinwheel", Dir: "."}}, modules...) {
		files := 0
		for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "PATENTS"} {
			names, err := filepath.Glob(filepath.Join(m.Dir, pattern))
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				text, err := os.ReadFile(name)
				if err != nil {
					return nil, err
				}
				files++
				fmt.Fprintf(&b, "==== %s %s: %s ====\n\n%s\n", m.Path, m.Version, filepath.Base(name), strings.TrimSpace(string(text))+"\n")
			}
		}
		if files == 0 {
			return nil, fmt.Errorf("%s %s has no licence file in %s", m.Path, m.Version, m.Dir)
		}
	}
	return b.Bytes(), nil
}
