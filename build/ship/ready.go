package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// semantic is https://semver.org without build metadata: a tag of a registry cannot hold its +.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?$`)

// ready says in one line why the checkout in a folder cannot be released under a version, or nothing.
func ready(folder, version string) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("VERSION is %q, allowed is MAJOR.MINOR.PATCH or that and -PRERELEASE, without v: make release VERSION=1.2.3", version)
	}
	const changelog = "CHANGELOG.md"
	text, err := os.ReadFile(filepath.Join(folder, changelog))
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(version) + ` - \d{4}-\d{2}-\d{2}$`).Match(text) {
		return fmt.Errorf("%s has no section %q: put that heading, with the day, in place of \"## Unreleased\"", changelog, "## "+version+" - YYYY-MM-DD")
	}
	status, err := git(folder, "status", "--porcelain", "--untracked-files=normal") // whatever git is configured to
	if err != nil {
		return err
	}
	if status != "" {
		changed := strings.Split(status, "\n")
		return fmt.Errorf("the tree is not clean, %d files, %q the first: commit them, or add them to .gitignore", len(changed), changed[0])
	}
	return nil
}

func git(folder string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = folder
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s; releases are made from a git checkout", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}
