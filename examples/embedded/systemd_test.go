//go:build systemd

package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// analyze runs systemd-analyze on the unit file, with hostsim where it was built.
func analyze(t *testing.T, edit func(string) string, args ...string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Fatalf("%v: apt-get update && apt-get install -y systemd", err)
	}
	unit := edit(strings.ReplaceAll(read(t, "hostsim.service"), "/usr/local/bin/hostsim", built(t, "hostsim")))
	path := filepath.Join(t.TempDir(), "hostsim.service")
	if err := os.WriteFile(path, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", append(args, path)...).CombinedOutput()
	return string(out), err
}

func asItIs(unit string) string { return unit }

// systemd takes the unit file without a word, and would say one about a mistake.
func TestSystemdVerifies(t *testing.T) {
	if out, err := analyze(t, asItIs, "verify"); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	mistake := func(unit string) string { return strings.Replace(unit, "ProtectHome=yes", "ProtectHoem=yes", 1) }
	if out, _ := analyze(t, mistake, "verify"); !strings.Contains(out, "ProtectHoem") {
		t.Errorf("a mistake passes: %q", out)
	}
}

// By systemd's own count the service can do little: at most 2.0 of 10.
func TestSystemdExposure(t *testing.T) {
	args := []string{"security", "--offline=true", "--threshold=20", "--no-pager"}
	if out, err := analyze(t, asItIs, args...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	open := func(unit string) string {
		before, rest, _ := strings.Cut(unit, "DynamicUser=yes\n")
		_, after, ok := strings.Cut(rest, "SystemCallErrorNumber=EPERM\n")
		if !ok {
			t.Fatal("the unit file's restrictions are not where they were")
		}
		return before + after
	}
	if out, err := analyze(t, open, args...); err == nil {
		t.Errorf("a service without bounds passes:\n%s", out)
	}
}
