package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuTime is what all threads of a process have run so far, from the
// scheduler's own nanosecond counter. Linux only.
func cpuTime(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("bench: no schedstat of process %d; the benchmark needs Linux", pid)
	}
	var sum time.Duration
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return 0, err
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text) + " x")[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("bench: %s: %w", f, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// envoyVersion is the version that a binary says it has, such as "1.40.0".
func envoyVersion(binary string) (string, error) {
	out, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("bench: %s --version: %w", binary, err)
	}
	// .../envoy  version: COMMIT/1.40.0/Clean/RELEASE/BoringSSL
	parts := strings.Split(string(out), "/")
	for _, p := range parts {
		if strings.Count(p, ".") == 2 && strings.Trim(p, "0123456789.") == "" {
			return p, nil
		}
	}
	return strings.TrimSpace(string(out)), nil
}
