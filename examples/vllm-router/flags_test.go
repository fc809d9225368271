//go:build peer

package vllmrouter

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page tells about every flag of the real --help, and of no other.
func TestEveryFlagIsInTheTable(t *testing.T) {
	help, err := peerCommand(t, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	_, options, ok := strings.Cut(string(help), "\noptions:\n")
	if !ok {
		t.Fatalf("--help has no options:\n%s", help)
	}
	var real []string
	for _, m := range regexp.MustCompile(`(?m)^  (?:(-\w), )?(--[a-z0-9-]+)`).FindAllStringSubmatch(options, -1) {
		for _, flag := range m[1:] {
			if flag != "" {
				real = append(real, flag)
			}
		}
	}
	if len(real) < 70 {
		t.Fatalf("only %d flags found in --help: %q", len(real), real)
	}
	var told []string
	for _, row := range tableUnder(t, "## Flags") {
		told = append(told, code(row[0])...)
	}
	for _, flag := range real {
		if !slices.Contains(told, flag) {
			t.Errorf("README.md does not tell about %s", flag)
		}
	}
	for i, flag := range told {
		if !slices.Contains(real, flag) {
			t.Errorf("README.md tells about %s, which does not exist", flag)
		}
		if slices.Contains(told[:i], flag) {
			t.Errorf("README.md tells about %s twice", flag)
		}
	}
}

// The page tells about every policy that the real --help offers.
func TestEveryPolicyIsInTheTable(t *testing.T) {
	help, err := peerCommand(t, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	choices := regexp.MustCompile(`--policy \{([a-z_,]+)\}`).FindSubmatch(help)
	if choices == nil {
		t.Fatalf("--help has no policies:\n%s", help)
	}
	var told []string
	for _, row := range tableUnder(t, "## Policies") {
		told = append(told, code(row[0])...)
	}
	real := strings.Split(string(choices[1]), ",")
	slices.Sort(real)
	slices.Sort(told)
	if !slices.Equal(real, told) {
		t.Errorf("README.md tells about %q, --help offers %q", told, real)
	}
}
