//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
)

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

// Each request is a line, without the session's own name; SIGHUP goes on in a new file.
func TestAccessLogAndRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.jsonl")
	o := operate(t, "--sim-replicas", "2", "--wasm", shipped, "--access-log", path)
	chat(t, o.url, "X-Session-ID", "planner@example.com")
	chat(t, o.url, "X-Session-ID", "planner@example.com")
	resp, err := http.Post(o.url+"/finish_session?session_id=planner@example.com", "", nil)
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
	chat(t, o.url, "X-Session-ID", "coder")
	if err := o.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Wait(); err != nil { // by then the last line is written
		t.Fatal(err)
	}
	old := readFile(t, path+".1")
	if strings.Contains(old, "planner") {
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

// A pipe that nobody reads is an error and no wait; one that somebody reads is a log.
func TestAccessLogInAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := openAccessLog(path, newSessionNames(nil), "", nil, nil); !errors.Is(err, syscall.ENXIO) {
		t.Fatalf("%v, %v", l, err)
	}
	read, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	l, err := openAccessLog(path, newSessionNames(nil), "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	const lines = 3000 // more than a pipe holds
	go func() {
		for range lines {
			l.write(&gateway.Access{Request: &http.Request{URL: &url.URL{Path: "/" + strings.Repeat("x", 100)}}})
		}
	}()
	from := bufio.NewReader(read)
	for range lines {
		if got := accessLines(t, line(t, from, "{")); len(got) != 1 || len(got[0].Path) != 101 {
			t.Fatalf("%+v", got)
		}
	}
}

// short is a disk with room for so many bytes.
type short struct {
	bytes.Buffer
	room int
}

func (s *short) Write(p []byte) (int, error) {
	n := min(s.room, len(p))
	s.room -= n
	s.Buffer.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// A disk that fills in the middle of a line costs that one and those until there is room, and one message.
func TestAccessLogOnAFullDisk(t *testing.T) {
	var errs bytes.Buffer
	disk := &short{room: 1000}
	l := &accessLog{names: newSessionNames(nil), errs: &errs, out: disk}
	write := func(path string) {
		l.write(&gateway.Access{Request: &http.Request{Method: "GET", URL: &url.URL{Path: path}}})
	}
	write("/before")
	for range 20 {
		write("/lost")
	}
	disk.room = 1000
	write("/after")
	write("/after")
	var paths []string
	for text := range strings.Lines(disk.String()) {
		var line accessLine
		if json.Unmarshal([]byte(text), &line) == nil {
			paths = append(paths, line.Path)
		}
	}
	if n := len(paths); n < 3 || paths[0] != "/before" || paths[n-1] != "/after" || paths[n-2] != "/after" || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("%q of\n%s\nsaid: %s", paths, disk, &errs)
	}
}

// Whatever a client sends, a line is one line of printable UTF-8, and says what was sent.
func TestAccessLogOfHostileRequests(t *testing.T) {
	var out bytes.Buffer
	l := &accessLog{names: newSessionNames([]string{"x-s"}), reasonHeader: "x-why", out: &out}
	for _, text := range []string{"\x1b[31m", "a\nb\r\u2028\u2029\u0085", "\u009b31m\x7f\u0080\u009f", "<script>&", "\"\\", "\x00", "é\u00a0日", strings.Repeat("\u009b", 30<<10)} {
		out.Reset()
		l.write(&gateway.Access{Request: &http.Request{Method: "GET", URL: &url.URL{Path: text}, Header: http.Header{"X-S": {text}}},
			Response: http.Header{"X-Why": {text}}, Cluster: text, Upstream: text, Detail: text})
		lines := accessLines(t, out.String())
		if len(lines) != 1 || lines[0].Path != text || lines[0].Reason != text || len(lines[0].Session) != 8 {
			t.Errorf("%.40q: %.200s", text, &out)
		}
		if at := strings.IndexFunc(strings.TrimSuffix(out.String(), "\n"), unicode.IsControl); at >= 0 || strings.ContainsAny(out.String(), "\u2028\u2029") {
			t.Errorf("%.40q: a control character in %.200q", text, &out)
		}
	}
	out.Reset()
	l.write(&gateway.Access{Request: &http.Request{Method: "GET", URL: &url.URL{Path: "\xff\xc2"}}})
	if lines := accessLines(t, out.String()); lines[0].Path != "\ufffd\ufffd" {
		t.Errorf("%q", lines[0].Path)
	}
	if got := printable("\u009b\x1b\x7fé"); got != "???é" {
		t.Errorf("a plugin's log line: %q", got)
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
