//go:build unix

package main

import (
	"bufio"
	"encoding/hex"
	"errors"
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
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
	"github.com/pinwheel-proxy/pinwheel/hostsim/livepage"
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

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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

// traps is a module whose _initialize is the instruction unreachable, and that has no more than every plugin must have.
const traps = "0061736d0100000001110460000060017f017f60027f7f00600000030504000102030503010001075505066d656d6f727902001770726f78795f6162695f" +
	"76657273696f6e5f305f325f310000066d616c6c6f6300011770726f78795f6f6e5f636f6e746578745f63726561746500020b5f696e697469616c697a65" +
	"00030a110402000b05004180080b02000b0300000b"

// A module that cannot be used is told in one line, and the old one goes on.
func TestReloadOfABadModule(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plugin.wasm")
	write := func(wasm []byte) {
		t.Helper()
		if err := os.WriteFile(path, wasm, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good, trapping := []byte(readFile(t, shipped)), make([]byte, len(traps)/2)
	if _, err := hex.Decode(trapping, []byte(traps)); err != nil {
		t.Fatal(err)
	}
	write(good)
	o := operate(t, "--wasm", path, "--sim-replicas", "1", "--access-log", "-")
	for want, wasm := range map[string][]byte{
		"trapped in _initialize":           trapping,
		"proxy_abi_version":                []byte("\x00asm\x01\x00\x00\x00"),
		"is not a WebAssembly module":      []byte("<html>"),
		"plugin.wasm is not a WebAssembly": nil,
		"unexpected EOF":                   good[:len(good)/2],
	} {
		write(wasm)
		got := o.hangup()
		if !strings.HasPrefix(got, "hostsim: not reloaded: ") || !strings.Contains(got, want) || !strings.HasSuffix(got, "; what was in force stays\n") || strings.Count(got, "hostsim: ") != 1 {
			t.Errorf("%s: says %q", want, got)
		}
		if resp, _ := chat(t, o.url, "X-Session-ID", "s1"); resp.Header.Get("x-pinwheel-reason") == "" {
			t.Errorf("%s: the plugin is gone", want)
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

// Who sends a request by drops, or takes no answer, is cut; a viewer is not.
func TestPageCutsWhoStalls(t *testing.T) {
	page := livepage.New(livepage.Config{Upstreams: func() []gateway.Upstream { return nil }, Every: time.Millisecond})
	server := pageServer(page, 20*time.Millisecond)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(ln)
	t.Cleanup(func() { page.Close(); server.Close() })
	viewer, err := http.Get("http://" + ln.Addr().String() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer viewer.Body.Close()
	updates := bufio.NewReader(viewer.Body)
	line(t, updates, "data: ")
	const get = "GET / HTTP/1.1\r\nHost: localhost\r\n"
	for name, send := range map[string]string{"headers": get, "body": "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1", "answers": get + "\r\n"} {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute)) // bounds a failure
		_, err = io.WriteString(conn, send)
		if name == "answers" {
			for err == nil { // never read
				_, err = io.WriteString(conn, send)
			}
		} else {
			_, err = io.Copy(io.Discard, conn)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: not cut", name)
		}
	}
	for range 2 { // at most one of them is old
		line(t, updates, "data: ")
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
