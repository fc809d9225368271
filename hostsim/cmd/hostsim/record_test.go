package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// recorded serves a few requests to the tests' plugin and returns the recording's path.
func recorded(t *testing.T, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "traffic.jsonl")
	s := start(t, "record", append([]string{"--wasm", guest(t), "--sim-replicas", "2", "-o", path}, args...)...)
	for range 4 {
		if resp, text := chat(t, s.url, "x-do", "reply", "authorization", "Bearer very-secret-1"); resp.StatusCode != 418 {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		chat(t, s.url, "authorization", "Bearer very-secret-1")
	}
	s.stop()
	if code := <-s.exited; code != 0 {
		t.Fatalf("exit %d: %s", code, s.stderr.String())
	}
	return path
}

func TestRecordAndCheck(t *testing.T) {
	path := recorded(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: a recording is for its owner alone", info.Mode(), err)
	}
	code, stdout, stderr := command("check", path, "--wasm", guest(t))
	if code != 0 || !strings.HasPrefix(stdout, "Equal: ") || !strings.HasSuffix(stdout, "Memory equal, bit for bit.\n") || stderr != "" {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	_, stdout, _ = command("check", path, "--wasm", guest(t), "--json")
	var r struct {
		Equal, SameModule          bool
		VMs, Memories              int
		Callbacks, HostCalls, Line uint64
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(stdout, "_", "")), &r); err != nil || !r.Equal || !r.SameModule || r.VMs != 4 || r.Memories != 4 || r.Callbacks < 20 {
		t.Errorf("%v: %s", err, stdout)
	}
}

// A difference is a diff with the line, and exit 1.
func TestCheckShowsTheDifference(t *testing.T) {
	path := recorded(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := bytes.Cut(text, []byte(`"args":{"code":418,`))
	if !found {
		t.Fatal("no local reply was recorded")
	}
	changed := filepath.Join(t.TempDir(), "changed.jsonl")
	if err := os.WriteFile(changed, bytes.Join([][]byte{before, after}, []byte(`"args":{"code":419,`)), 0o600); err != nil {
		t.Fatal(err)
	}
	line := 1 + bytes.Count(before, []byte("\n"))
	code, stdout, stderr := command("check", changed, "--wasm", guest(t))
	for _, want := range []string{
		"--- recording, line " + strconv.Itoa(line) + " (worker ", ", in proxy_on_request_headers of context ", "\n+++ module\n",
		"\n-host call env.proxy_send_local_response {\"code\":419,", "\n+calls env.proxy_send_local_response {\"code\":418,", "Equal before that: ",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if code != 1 || !strings.Contains(stderr, " differs from "+changed+" at line "+strconv.Itoa(line)) {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, stdout, _ = command("check", changed, "--wasm", guest(t), "--json")
	var r struct {
		Equal      bool
		Difference struct {
			Line          int
			Expected, Got string
		}
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 1 || r.Equal || r.Difference.Line != line || r.Difference.Expected == "" || r.Difference.Got == "" {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
}

func TestRecordRedacts(t *testing.T) {
	path := recorded(t, "--redact", "Authorization,cookie")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("very-secret-1")) || !bytes.Contains(text, []byte(`["authorization","Bearer `)) {
		t.Error("the header is not redacted, or is gone")
	}
	code, stdout, stderr := command("check", path, "--wasm", guest(t))
	if code != 0 || !strings.Contains(stdout, "Memory is not compared: the recording hides Authorization, cookie.") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

func TestRecordAndCheckMistakes(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args []string
		code int
		says string
	}{
		{[]string{"record", "--sim-replicas", "1"}, 2, "give --wasm"},
		{[]string{"record", "--wasm", guest(t)}, 2, "nothing to forward to"},
		{[]string{"record", "--wasm", guest(t), "--sim-replicas", "1", "-o", filepath.Join(empty, "x")}, 1, "--output: open "},
		{[]string{"check"}, 2, "check takes one recording"},
		{[]string{"check", empty}, 2, "give --wasm"},
		{[]string{"check", empty, "--wasm", guest(t)}, 1, empty + ": unreadable recording: line 1: the file is empty"},
		{[]string{"check", guest(t), "--wasm", guest(t)}, 1, "line 1: not a recording of hostsim"},
		{[]string{"check", empty + "x", "--wasm", guest(t)}, 1, "no such file"},
	}
	for _, tt := range tests {
		if code, stdout, stderr := command(tt.args...); code != tt.code || !strings.Contains(stderr, tt.says) || stdout != "" {
			t.Errorf("hostsim %v: exit %d, want %d and %q:\n%s%s", tt.args, code, tt.code, tt.says, stdout, stderr)
		}
	}
}

// The recorder refuses a terminal, of which a device stands in here: any but the null device.
func TestRecordRefusesATerminal(t *testing.T) {
	device, err := os.OpenFile("/dev/zero", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if !terminal(device) || terminal(null) || terminal(&bytes.Buffer{}) {
		t.Errorf("device %v, null %v, buffer %v", terminal(device), terminal(null), terminal(&bytes.Buffer{}))
	}
}
