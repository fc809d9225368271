//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// operated is serve as a process of its own, for signals.
type operated struct {
	t              *testing.T
	cmd            *exec.Cmd
	url, page      string
	stdout, stderr *bufio.Reader
}

// launch starts serve.
func launch(t *testing.T, args ...string) *operated {
	t.Helper()
	o := &operated{t: t, cmd: exec.Command(os.Args[0], append([]string{"serve"}, args...)...)}
	o.cmd.Env = append(os.Environ(), asCommand+"=1")
	stdout, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := o.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.cmd.Process.Kill(); _ = o.cmd.Wait() })
	o.stdout, o.stderr = bufio.NewReader(stdout), bufio.NewReader(stderr)
	return o
}

// operate starts serve and waits until it has said where it is.
func operate(t *testing.T, args ...string) *operated {
	t.Helper()
	o := launch(t, append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	said := o.stdout
	if strings.Contains(strings.Join(args, " "), "--access-log -") {
		said = o.stderr
	}
	o.url = regexp.MustCompile(`http://[0-9.:]+`).FindString(line(t, said, "Listening on "))
	if strings.Contains(strings.Join(args, " "), "--page ") {
		o.page = regexp.MustCompile(`http://[0-9.:]+`).FindString(line(t, said, "Live page on "))
	}
	return o
}

// line is the next one that holds text.
func line(t *testing.T, from *bufio.Reader, text string) string {
	t.Helper()
	all := ""
	for {
		l, err := from.ReadString('\n')
		if all += l; err != nil {
			t.Fatalf("%v after %q, want %q", err, all, text)
		}
		if strings.Contains(l, text) {
			return l
		}
	}
}

// hangup sends SIGHUP and returns what the process says of it.
func (o *operated) hangup() string {
	o.t.Helper()
	if err := o.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		o.t.Fatal(err)
	}
	return line(o.t, o.stderr, "reloaded")
}

func accessLines(t *testing.T, text string) (lines []accessLine) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	for d.More() {
		var l accessLine
		if err := d.Decode(&l); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		lines = append(lines, l)
	}
	return lines
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each request is a line, without the session's own name; SIGHUP goes on in a new file.
func TestAccessLogAndRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.jsonl")
	o := operate(t, "--sim-replicas", "2", "--wasm", shipped, "--access-log", path)
	chat(t, o.url, "X-Session-ID", "alice@example.com")
	chat(t, o.url, "X-Session-ID", "alice@example.com")
	resp, err := http.Post(o.url+"/finish_session?session_id=alice@example.com", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	chat(t, o.url) // into the old file: nobody has said anything
	if got := o.hangup(); !strings.HasPrefix(got, "hostsim: reloaded, access log opened again, ") {
		t.Errorf("says %q", got)
	}
	chat(t, o.url, "X-Session-ID", "bob")
	if err := o.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Wait(); err != nil { // by then the last line is written
		t.Fatal(err)
	}
	old := readFile(t, path+".1")
	if strings.Contains(old, "alice") {
		t.Errorf("the log names a session: %s", old)
	}
	lines := append(accessLines(t, old), accessLines(t, readFile(t, path))...)
	if len(lines) != 5 {
		t.Fatalf("%d lines: %+v", len(lines), lines)
	}
	for i, l := range lines {
		if l.Method != "POST" || l.Status != 200 || l.Cluster != simCluster || l.DurationMS <= 0 || l.End != "" || !strings.HasSuffix(l.Time, "Z") {
			t.Errorf("%+v", l)
		}
		want := []string{"placed", "pinned", "", "keyless", "placed"}[i]
		if l.Reason != want || (l.Session == "") != (want == "" || want == "keyless") || (l.Upstream == "") != (want == "") {
			t.Errorf("%+v, want %q", l, want)
		}
	}
	if lines[0].Session != lines[1].Session || lines[0].Session == lines[4].Session || lines[0].Upstream != lines[1].Upstream {
		t.Errorf("%+v", lines)
	}
	if release := lines[2]; release.Path != "/finish_session" || release.Detail != "local_reply" {
		t.Errorf("%+v", release)
	}
}

// On standard output there are access lines only.
func TestAccessLogOnStandardOutput(t *testing.T) {
	o := operate(t, "--sim-replicas", "1", "--access-log", "-")
	chat(t, o.url)
	if got := accessLines(t, line(t, o.stdout, "{")); len(got) != 1 || got[0].Path != "/v1/chat/completions" {
		t.Errorf("%+v", got)
	}
}

// A file that cannot be opened anew leaves the old one in use, one at the start ends serve.
func TestAccessLogThatCannotBeOpened(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	path := filepath.Join(dir, "access.jsonl")
	code, _, stderr := command("serve", "--sim-replicas", "1", "--listen", "127.0.0.1:0", "--access-log", path)
	if code != exitFailed || !strings.Contains(stderr, "--access-log: open "+path) {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	l, err := openAccessLog(path, newSessionNames(nil), "", &out, &errs)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := reload(t.Context(), nil, nil, l); !strings.HasPrefix(got, "hostsim: not reloaded: --access-log: ") {
		t.Errorf("says %q", got)
	}
	if _, err := l.out.Write([]byte("x")); err != nil {
		t.Errorf("the old file: %v", err)
	}
}

// SIGHUP puts a new configuration in force while sessions keep their replicas; a bad one changes nothing.
func TestReload(t *testing.T) {
	sim, err := startFleet(2, replica.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.stop()
	a, b := sim.addresses[0], sim.addresses[1]
	path := filepath.Join(t.TempDir(), "pinwheel.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	active, draining := `{"debug_headers":true,"replicas":["`+a+`","`+b+`"]}`, `{"debug_headers":true,"replicas":["`+a+`",{"address":"`+b+`","state":"draining"}]}`
	write(active)
	o := operate(t, "--wasm", shipped, "--config", path, "--upstream", "llm="+a+","+b)
	homes := map[string]string{}
	for _, session := range []string{"s1", "s2", "s3", "s4"} {
		resp, _ := chat(t, o.url, "X-Session-ID", session)
		homes[session] = resp.Header.Get(replica.ReplicaHeader)
	}
	if got := o.hangup(); !strings.HasSuffix(got, "plugin and configuration have not changed\n") {
		t.Errorf("says %q", got)
	}
	for text, want := range map[string]string{
		`{"replicas":[],"nonsense":1}`:  "not reloaded: the plugin refused the configuration",
		`{"replicas":["10.9.9.9:8000"]`: "not reloaded: the plugin refused the configuration",
		`{"replicas":["10.9.9.9:8000"]}`: "not reloaded: --config names 10.9.9.9:8000, which is no host of cluster llm (" + a + ", " + b +
			"); what was in force stays",
	} {
		write(text)
		if got := o.hangup(); !strings.Contains(got, want) {
			t.Errorf("%s: says %q", text, got)
		}
		if resp, _ := chat(t, o.url, "X-Session-ID", "s1"); resp.Header.Get("x-pinwheel-reason") != "pinned" {
			t.Errorf("%s: afterwards the reason is %q", text, resp.Header.Get("x-pinwheel-reason"))
		}
	}
	write(draining)
	if got := o.hangup(); !strings.HasSuffix(got, "as the files have them now\n") {
		t.Fatalf("says %q", got)
	}
	for n := range 6 {
		if resp, _ := chat(t, o.url, "X-Session-ID", fmt.Sprint("new", n)); resp.Header.Get(replica.ReplicaHeader) != a {
			t.Errorf("a new session went to %s, which drains", resp.Header.Get(replica.ReplicaHeader))
		}
	}
	for session, home := range homes {
		if resp, _ := chat(t, o.url, "X-Session-ID", session); resp.Header.Get(replica.ReplicaHeader) != home {
			t.Errorf("%s went to %s, it was on %s", session, resp.Header.Get(replica.ReplicaHeader), home)
		}
	}
}

// SIGHUP while the plugin still starts waits until it has.
func TestHangupWhileItStarts(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	o := launch(t, "--listen", address, "--wasm", shipped, "--sim-replicas", "1")
	for {
		if conn, err := net.Dial("tcp", address); err == nil { // before the plugin is compiled
			conn.Close()
			break
		}
	}
	if got := o.hangup(); got != "hostsim: reloaded, plugin and configuration have not changed\n" {
		t.Errorf("says %q", got)
	}
}

// Who cannot be told any more, as after a terminal is closed, is not served on in the dark.
func TestHangupWithoutAnybody(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	defer write.Close()
	stopped := make(chan struct{})
	hangups, release := catchHangups()
	defer release()
	reloadOnHangup(t.Context(), hangups, &pluginFiles{}, nil, nil, write, func() { close(stopped) })
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-stopped
}

// The page has a port of its own, on loopback unless told otherwise, and the gateway's port does not have it.
func TestPageIsOnItsOwnPort(t *testing.T) {
	o := operate(t, "--sim-replicas", "1", "--page", ":0")
	if !strings.HasPrefix(o.page, "http://127.0.0.1:") {
		t.Errorf("the page is on %s", o.page)
	}
	get := func(url string) (int, string) {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	if code, text := get(o.page); code != 200 || !strings.Contains(text, "<title>hostsim: live</title>") {
		t.Errorf("the page: %d %.80s", code, text)
	}
	for _, path := range []string{"/", "/events"} {
		if code, text := get(o.url + path); code != 404 || strings.Contains(text, "hostsim") { // the replica's answer
			t.Errorf("the gateway at %s: %d %.80s", path, code, text)
		}
	}
}

// Before simulated servers it says what an SDK is to be given, and that is so.
func TestServeTellsTheBaseURL(t *testing.T) {
	o := operate(t, "--sim-replicas", "1")
	base := regexp.MustCompile(`OPENAI_BASE_URL=([^ ,]+)`).FindStringSubmatch(line(t, o.stdout, "For OpenAI's SDKs"))
	if base == nil || !strings.HasPrefix(base[1], o.url) {
		t.Fatalf("the base URL is %q", base)
	}
	resp, err := http.Get(base[1] + "/models")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s/models answers %d", base[1], resp.StatusCode)
	}
}

// A stop waits for what runs, no longer than it is told to.
func TestStopTimeout(t *testing.T) {
	o := operate(t, "--sim-replicas", "1", "--sim-token-time", "1h", "--stop-timeout", "10ms")
	resp, err := http.Post(o.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := o.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	line(t, o.stderr, "requests still running after 10ms were cut")
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the answer was not cut")
	}
	if err := o.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestOperationFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--stop-timeout 0s":       "--stop-timeout 0s is not above 0",
		"--idle-timeout -1s":      "--idle-timeout -1s is negative",
		"--max-requests -1":       "--max-requests -1 is negative",
		"--max-connections -1":    "--max-connections -1 is negative",
		"--max-header-bytes 1023": "--max-header-bytes 1023 is outside 1024 to 16777216",
		"--max-body-bytes -1":     "--max-body-bytes -1 is negative",
		"--page-session-ids":      "give --page too",
		"--page nowhere":          "--page: listen tcp: address nowhere: missing port in address; want HOST:PORT, such as ",
		"--sim-token-time -1s":    "--sim-token-time -1s is negative",
	} {
		code, _, stderr := command(append([]string{"serve", "--sim-replicas", "1", "--listen", "127.0.0.1:0"}, strings.Fields(flags)...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d: %s", flags, code, stderr)
		}
	}
}
