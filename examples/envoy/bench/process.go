package main

import (
	"fmt"
	"os/exec"
	"strings"
)

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
