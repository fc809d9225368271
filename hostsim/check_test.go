package hostsim

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// build compiles a guest with further flags.
func build(t testing.TB, name string, flags ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".wasm")
	cmd := exec.Command("go", append(append([]string{"build", "-buildmode=c-shared", "-o", out}, flags...), "./testdata/guests/"+name)...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build guest %s: %v\n%s", name, err, text)
	}
	wasm, err := os.ReadFile(out)
	ok(t, err)
	return wasm
}

// recordGreeter records n requests to the greeter.
func recordGreeter(t testing.TB, n int, o RecordOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	h, err := New(context.Background(), Config{Wasm: guest(t, "greeter"), Recorder: NewRecorder(&out, o)})
	ok(t, err)
	for i := range n {
		s := h.Worker(0).NewStream()
		_, err := s.RequestHeaders(append(get.Clone(), [2]string{"x-name", "number-" + strconv.Itoa(i)}), true)
		ok(t, err)
		_, err = s.ResponseHeaders(reply, true)
		ok(t, err)
		ok(t, s.End(EndNormal))
	}
	ok(t, h.Close())
	return out.Bytes()
}

// lineOf is the number of the nth line that holds text.
func lineOf(t testing.TB, recording []byte, nth int, text string) int {
	t.Helper()
	for i, line := range bytes.Split(recording, []byte("\n")) {
		if bytes.Contains(line, []byte(text)) {
			if nth--; nth == 0 {
				return i + 1
			}
		}
	}
	t.Fatalf("no line with %s", text)
	return 0
}

// Another build that does the same is equal, although its collector reads the clock at other moments.
func TestAnotherBuildIsComparedByBehaviour(t *testing.T) {
	recording := recordGreeter(t, 50, RecordOptions{})
	report, err := Check(context.Background(), build(t, "greeter", "-gcflags=-N -l"), bytes.NewReader(recording))
	ok(t, err)
	if report.SameModule || report.Memories != 0 || report.VMs != 3 || report.Callbacks < 150 {
		t.Errorf("%+v", report)
	}
}

func TestFirstDifference(t *testing.T) {
	recording := recordGreeter(t, 3, RecordOptions{})
	const key = `proxy_add_header_map_value`
	tests := []struct {
		name          string
		wasm          []byte
		line          int
		expected, got string
	}{
		{"argument", build(t, "greeter", "-ldflags=-X main.greeting=Hello"), lineOf(t, recording, 1, key),
			`host call env.` + key + ` {"map":0,"key":"x-greeting","value":"hello number-0"}`,
			`calls env.` + key + ` {"map":0,"key":"x-greeting","value":"Hello number-0"}`},
		{"result", build(t, "greeter", "-ldflags=-X main.answer=1"), lineOf(t, recording, 1, `"end","vm":2,"result":0`), "returns 0", "returns 1"},
		{"another plugin", guest(t, "mute"), lineOf(t, recording, 1, "proxy_get_header_map_value"),
			`host call env.proxy_get_header_map_value {"map":0,"key":"x-name"}`, "returns 0"},
		{"no such callback", minimal().bytes(), lineOf(t, recording, 1, "_initialize"), "callback _initialize[]", "does not export _initialize"},
	}
	for _, tt := range tests {
		report, err := Check(context.Background(), tt.wasm, bytes.NewReader(recording))
		var d *Difference
		if !errors.As(err, &d) || !errors.Is(err, ErrDifference) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if d.Line != tt.line || d.Expected != tt.expected || d.Got != tt.got || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: want line %d, %v", tt.name, tt.line, err)
		}
		if report == nil || report.SameModule {
			t.Errorf("%s: %+v", tt.name, report)
		}
	}
}

// The recorded module itself differs from a recording that has been changed, at the changed line or, where only an answer
// has been, at the line where it shows.
func TestChangedRecordingDiffers(t *testing.T) {
	recording := string(recordGreeter(t, 3, RecordOptions{}))
	tests := []struct{ name, old, new, shows, err string }{
		{"argument", `"value":"hello number-1"`, `"value":"hello number-9"`, `hello number-1`, `calls env.proxy_add_header_map_value {"map":0,"key":"x-greeting","value":"hello number-1"}`},
		{"answer", `"out":{"value":"number-1"}`, `"out":{"value":"number-8"}`, `"value":"hello number-1"`, `"value":"hello number-8"`},
		{"longer answer", `"out":{"value":"number-1"}`, `"out":{"value":"` + strings.Repeat("n", 2000) + `"}`, `"value":"hello number-1"`, `"value":"hello nnn`},
		{"status", `"status":"OK","out":{"value":"number-1"}`, `"status":"NOT_FOUND"`, `"value":"hello number-1"`, `hello nobody`},
		{"trap", `"status":"OK","out":{"value":"number-1"}`, `"trap":"a fault"`, `"value":"hello number-1"`, `traps: a fault`},
		{"a call inside", `"out":{"value":"number-1"}`, `"out":{"value":"number-1"},"during":[{"kind":"call","vm":2,"name":"env.proxy_done","args":{},"status":"OK"}]`,
			`"out":{"value":"number-1"}`, "inside env.proxy_get_header_map_value host call env.proxy_done {}"},
		{"memory", `"memory_sha256":"`, `"memory_sha256":"0`, `"memory_sha256":"`, `left `},
	}
	for _, tt := range tests {
		if !strings.Contains(recording, tt.old) {
			t.Fatalf("%s: nothing to change", tt.name)
		}
		_, err := Check(context.Background(), guest(t, "greeter"), strings.NewReader(strings.Replace(recording, tt.old, tt.new, 1)))
		var d *Difference
		if !errors.As(err, &d) || d.Line != lineOf(t, []byte(recording), 1, tt.shows) || !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: want line %d with %q: %v", tt.name, lineOf(t, []byte(recording), 1, tt.shows), tt.err, err)
		}
	}
}

// A recording written anew by another JSON writer is the same recording.
func TestSpellingDoesNotMatter(t *testing.T) {
	recording := string(recordGreeter(t, 3, RecordOptions{}))
	recording = strings.ReplaceAll(recording, `{"map":0,"key":"x-name"}`, `{ "key": "x\u002dname", "map": 0 }`)
	_, err := Check(context.Background(), guest(t, "greeter"), strings.NewReader(recording))
	ok(t, err)
}

func TestUnreadableRecordings(t *testing.T) {
	recording := string(recordGreeter(t, 1, RecordOptions{}))
	lines := strings.SplitAfter(recording, "\n")
	last := len(lines) - 2 // the trailer
	without := func(i int) string { return strings.Join(lines[:i], "") + strings.Join(lines[i+1:], "") }
	tests := []struct{ name, text, err string }{
		{"empty", "", "line 1: the file is empty"},
		{"a module", "\x00asm\x01\x00\x00\x00", "line 1: not a recording of hostsim"},
		{"foreign JSON", `{"seq":1,"kind":"header","format":"har"}` + "\n", "line 1: not a recording of hostsim"},
		{"newer", strings.Replace(recording, `"version":1`, `"version":2`, 1), "line 1: version 2: this hostsim reads up to 1"},
		{"newer with other fields", `{"format":"hostsim-recording","version":7,"workers":{"new":1}}`, "line 1: version 7"},
		{"no trailer", strings.Join(lines[:last], ""), "line " + strconv.Itoa(last+1) + ": cut off: the trailer is missing"},
		{"middle of a line", recording[:len(recording)-20], "line " + strconv.Itoa(last+1) + ": cut off in the middle"},
		{"missing line", without(20), "line 21: number 22 follows 20: lines are missing"},
		{"not JSON", strings.Replace(recording, `"kind":"end"`, `"kind":"end`, 1), "not JSON as hostsim writes it"},
		{"unknown kind", strings.Replace(recording, `"kind":"end"`, `"kind":"ende"`, 1), `kind "ende" is not known`},
		{"no vm", strings.Replace(recording, `"kind":"end","vm":0`, `"kind":"end"`, 1), "kind end without its vm"},
		{"unknown vm", strings.Replace(recording, `"kind":"end","vm":0`, `"kind":"end","vm":77`, 1), "virtual machine 77 has not begun"},
		{"no args", strings.Replace(recording, `"args":[]`, `"a":[]`, 1), "kind callback without name or args"},
		{"bad args", strings.Replace(recording, `"args":[]`, `"args":["a"]`, 1), "args of callback _initialize"},
		{"bad status", strings.Replace(recording, `"status":"OK"`, `"status":"FINE"`, 1), `no such status: "FINE"`},
		{"bad answer", strings.Replace(recording, `"out":{"value":"number-0"}`, `"out":{"value":{"base64":3}}`, 1), "value of env.proxy_get_header_map_value"},
		{"an answer that is none", strings.Replace(recording, `"out":{"value":"number-0"}`, `"out":{"key":"number-0"}`, 1), "key of env.proxy_get_header_map_value: the host does not write it"},
		{"no end", strings.Replace(recording, `"kind":"vm_end","vm":2`, `"kind":"event","vm":2`, 1), "the recording ends, but virtual machine 2 has not"},
		{"totals", strings.Replace(recording, `"vms":3`, `"vms":4`, 1), "the trailer counts"},
		{"memory limit", strings.Replace(recording, `"memory_limit_pages":16384`, `"memory_limit_pages":0`, 1), "memory_limit_pages is 0"},
		{"behind the end", recording + "more\n", "line " + strconv.Itoa(last+2) + ": not a recording of hostsim"},
	}
	for _, tt := range tests {
		_, err := Check(context.Background(), guest(t, "greeter"), strings.NewReader(tt.text))
		if !errors.Is(err, ErrRecording) || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: want %q: %v", tt.name, tt.err, err)
		}
	}
}

// Hosts may share a recorder one after the other.
func TestSeveralRecordingsInOneFile(t *testing.T) {
	var out bytes.Buffer
	r := NewRecorder(&out, RecordOptions{})
	c := Config{Wasm: guest(t, "greeter"), Recorder: r}
	for range 3 {
		h, err := New(context.Background(), c)
		ok(t, err)
		if _, err := New(context.Background(), c); !errors.Is(err, ErrConfig) {
			t.Errorf("two hosts at once: %v", err)
		}
		ok(t, h.Close())
		ok(t, h.Close())
	}
	report, err := Check(context.Background(), c.Wasm, &out)
	ok(t, err)
	if report.Recordings != 3 || report.VMs != 9 || report.Memories != 9 {
		t.Errorf("%+v", report)
	}
}

// A start that is refused is recorded to its end.
func TestRefusedStartIsRecorded(t *testing.T) {
	var out bytes.Buffer
	c := Config{Wasm: guest(t, "probe"), VMConfig: []byte("refuse"), Recorder: NewRecorder(&out, RecordOptions{})}
	if _, err := New(context.Background(), c); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
	report, err := Check(context.Background(), c.Wasm, &out)
	ok(t, err)
	if report.VMs != 1 {
		t.Errorf("%+v", report)
	}
}

type brokenWriter struct{ after int }

var errDisk = errors.New("disk full")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func TestRecorderReportsItsWriter(t *testing.T) {
	r := NewRecorder(&brokenWriter{after: 70_000}, RecordOptions{})
	h, err := New(context.Background(), Config{Wasm: guest(t, "greeter"), Recorder: r})
	ok(t, err)
	for range 1000 {
		s := h.Worker(0).NewStream()
		_, err := s.RequestHeaders(get, true)
		ok(t, err)
		ok(t, s.End(EndNormal))
	}
	if err := h.Close(); !errors.Is(err, errDisk) || !errors.Is(r.Err(), errDisk) {
		t.Errorf("close %v, recorder %v", err, r.Err())
	}
}

// A module that needs more memory than the recorded host gave is refused by name, not run.
func TestCheckOfAModuleOverTheRecordedMemory(t *testing.T) {
	recording := strings.Replace(string(recordGreeter(t, 1, RecordOptions{})), `"memory_limit_pages":16384`, `"memory_limit_pages":1`, 1)
	if _, err := Check(context.Background(), guest(t, "greeter"), strings.NewReader(recording)); !errors.Is(err, ErrMemory) {
		t.Errorf("err %v", err)
	}
}
