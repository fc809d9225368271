package embedded

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// setting is the value of a unit file's only line with that name, continued lines joined.
func setting(t *testing.T, unit, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(strings.ReplaceAll(unit, "\\\n", " "), -1)
	if len(m) != 1 {
		t.Fatalf("%d lines with %s=", len(m), name)
	}
	return m[0][1]
}

// The command line of the unit file, its files and ports moved, serves, reloads and stops by what the unit file sends.
func TestUnitRuns(t *testing.T) {
	unit, dir := read(t, "hostsim.service"), t.TempDir()
	config := filepath.Join(dir, "pinwheel.json")
	command := setting(t, unit, "ExecStart")
	for _, swap := range [][2]string{{"/usr/local/bin/hostsim", built(t, "hostsim")}, {"/usr/local/lib/pinwheel/pinwheel.wasm", built(t, "pinwheel.wasm")},
		{"/etc/pinwheel/pinwheel.json", config}, {"/var/log/pinwheel/access.jsonl", filepath.Join(dir, "access.jsonl")}} {
		if strings.Count(command, swap[0]) != 1 {
			t.Fatalf("ExecStart has %s not once", swap[0])
		}
		command = strings.Replace(command, swap[0], swap[1], 1)
	}
	// Who follows the page installs its pinwheel.json beside this unit.
	page := read(t, root+"/docs/embedded-gateway.md")
	if want := regexp.MustCompile(`--upstream (\S+)`).FindString(page); !strings.Contains(command, want+" ") {
		t.Errorf("the page has %s, and ExecStart is %s", want, command)
	}
	command = freePorts(t, command, "8001", "8002", "8080", "8081")
	hosts := regexp.MustCompile(`vllm=([0-9.:]+),([0-9.:]+)`).FindStringSubmatch(command)
	if hosts == nil {
		t.Fatalf("no two replicas in %s", command)
	}
	if err := os.WriteFile(config, []byte(`{"replicas": ["`+hosts[1]+`", "`+hosts[2]+`"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(command)
	cmd := exec.Command(args[0], args[1:]...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }() // it has ended if all is well
	said := until(t, bufio.NewScanner(stdout), "Live page on ")
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(said)
	resp, err := http.Get(address + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable { // nobody is on the replicas' ports
		t.Errorf("status %d", resp.StatusCode)
	}
	if got := setting(t, unit, "ExecReload"); got != "/bin/kill -HUP $MAINPID" {
		t.Errorf("ExecReload=%s", got)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, bufio.NewScanner(stderr), "hostsim: reloaded, access log opened again")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("told to stop: %v", err)
	}
}

func until(t *testing.T, lines *bufio.Scanner, text string) (all string) {
	t.Helper()
	for lines.Scan() {
		if all += lines.Text() + "\n"; strings.Contains(lines.Text(), text) {
			return all
		}
	}
	t.Fatalf("%q is not said in %q", text, all)
	return ""
}

// systemd waits longer than the gateway does.
func TestUnitStopsInTime(t *testing.T) {
	unit := read(t, "hostsim.service")
	m := regexp.MustCompile(`--stop-timeout (\S+)`).FindStringSubmatch(unit)
	if m == nil {
		t.Fatal("no --stop-timeout")
	}
	waits, err := time.ParseDuration(m[1])
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.Atoi(setting(t, unit, "TimeoutStopSec"))
	if err != nil || time.Duration(seconds)*time.Second <= waits {
		t.Errorf("systemd waits %d s (%v), the gateway %v", seconds, err, waits)
	}
}
