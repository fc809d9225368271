package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/version"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// guestWasm compiles the gateway tests' plugin, once, and returns its path.
var guestWasm = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hostsim")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "../../gateway/testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return out, nil
})

// asCommand is the environment variable that makes the test's binary the command.
const asCommand = "HOSTSIM_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	code := m.Run()
	if path, err := guestWasm(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func guest(t *testing.T) string {
	t.Helper()
	path, err := guestWasm()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs one command line to its end.
func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// lacking is the smallest module that fails for one import only, env.no_such_call: header, one type, that import, a memory,
// and the ABI marker and the allocator as exports of the import.
var lacking = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x06\x01`\x01\x7f\x01\x7f" +
	"\x02\x14\x01\x03env\x0cno_such_call\x00\x00" +
	"\x05\x03\x01\x00\x01" +
	"\x07?\x03\x17proxy_abi_version_0_2_1\x00\x00\x18proxy_on_memory_allocate\x00\x00\x06memory\x02\x00")

// trapping starts, and traps in proxy_on_context_create: three types, three functions, a memory, exports, their code.
var trapping = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x0e\x03`\x00\x00`\x01\x7f\x01\x7f`\x02\x7f\x7f\x00" +
	"\x03\x04\x03\x00\x01\x02" +
	"\x05\x03\x01\x00\x01" +
	"\x07Y\x04\x17proxy_abi_version_0_2_1\x00\x00\x18proxy_on_memory_allocate\x00\x01\x17proxy_on_context_create\x00\x02\x06memory\x02\x00" +
	"\x0a\x0d\x03\x02\x00\x0b\x03\x00\x00\x0b\x04\x00\x01\x00\x0b")

// The last line says what to do about a plugin that crashes at its start; the stack stands above, once.
func TestServeTellsACrashAtTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trapping.wasm")
	if err := os.WriteFile(path, trapping, 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := command("serve", "--sim-replicas", "1", "--listen", "127.0.0.1:0", "--wasm", path)
	if code != 1 || strings.Count(stderr, "\n\tin ") != 1 || !strings.HasSuffix(stderr, "correct --config or --root-id\n") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	bad, text, cut := filepath.Join(dir, "bad.wasm"), filepath.Join(dir, "text.wasm"), filepath.Join(dir, "cut.wasm")
	if err := os.WriteFile(bad, lacking, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, lacking[:20], 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args string
		code int
		says string // in what is printed
	}{
		{"", 0, "serve"},
		{"--help", 0, "Exit codes"},
		{"--help", 0, "Usage:\n  hostsim COMMAND\n\nAvailable"},
		{"--help", 0, "\n  completion "},
		{"completion --help", 0, "Usage:\n  hostsim completion SHELL\n"},
		{"completion bash", 0, "bash completion"},
		{"serve --help", 0, "--sim-replicas"},
		{"serve --help", 0, "hostsim serve --wasm"},
		{"inspect --help", 0, "--json"},
		{"demo --help", 0, "--stay"},
		{"swim", 2, `no command "swim"`},
		{"serve --port 1", 2, "unknown flag: --port"},
		{"serve", 2, "--upstream CLUSTER=HOST:PORT or --sim-replicas N"},
		{"serve more --sim-replicas 1", 2, "takes flags only"},
		{"serve --sim-replicas -1", 2, "outside 1 to 256"},
		{"serve --sim-replicas 1 --upstream a=b:1", 2, "not both"},
		{"serve --sim-replicas 1 --workers 0", 2, "--workers 0"},
		{"serve --sim-replicas 1 --sim-cache-tokens -5", 2, "negative"},
		{"serve --sim-replicas 1 --config {}", 2, "give --wasm too"},
		{"serve --upstream a", 2, "is not CLUSTER=HOST:PORT"},
		{"serve --upstream a=b", 2, "is not HOST:PORT"},
		{"serve --upstream a=b:1 --upstream a=c:1 --listen 127.0.0.1:0", 2, `"a" is taken`},
		{"serve --upstream a=b:1 --http2 b", 2, "no --upstream has that name"},
		{"serve --sim-replicas 1 --profile nginx", 2, "choose one of envoy-1.40, envoy-1.36, permissive"},
		{"serve --sim-replicas 1 --wasm x --config nothing-here.json", 1, "nothing-here.json"},
		{"serve --sim-replicas 1 --listen 127.0.0.1:0 --wasm nothing-here.wasm", 1, "nothing-here.wasm: no such file or directory: name a compiled plugin\n"},
		{"serve --sim-replicas 1 --listen 127.0.0.1:0 --wasm " + bad, 1, "env.no_such_call"},
		{"demo --wasm nowhere/pinwheel.wasm", 1, "make wasm"},
		{"demo --sim-replicas 0", 2, "outside 1 to 64"},
		{"run", 2, "--example prints one"},
		{"run --help", 0, "--coverage"},
		{"run nothing-here.yaml", 1, "nothing-here.yaml"},
		{"run x.yaml --profile nginx", 2, "choose one of"},
		{"run x.yaml --wasm nothing-here.wasm", 1, "name a compiled plugin"},
		{"run x.yaml --run (", 2, "--run: error parsing regexp"},
		{"run --example", 0, "# What expect does not mention"[2:]},
		{"run --schema", 0, "json-schema.org"},
		{"inspect", 2, "takes one file"},
		{"inspect " + text, 1, "hostsim: " + text + " is not a WebAssembly module (invalid magic number): name a .wasm file\n"},
		{"inspect " + cut, 1, "hostsim: " + cut + " is not a WebAssembly module ("},
		{"serve --sim-replicas 1 --listen 127.0.0.1:0 --wasm " + text, 1, "hostsim: " + text + " is not a WebAssembly module"},
		{"inspect nothing-here.wasm", 1, "name a compiled plugin"},
		{"inspect " + bad, 1, "envoy-1.40 would not load"},
		{"inspect " + bad, 1, "because of env.no_such_call"},
		{"inspect " + bad + " --profile permissive", 0, "permissive  loads"},
		{"inspect " + bad + " --profile nginx", 2, "no profile"},
		{"inspect " + guest(t), 0, "proxy_on_request_headers"},
		{"inspect " + guest(t) + " --profile envoy-1.36", 0, "env.proxy_send_local_response"},
	}
	for _, tt := range tests {
		code, stdout, stderr := command(strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.says) {
			t.Errorf("hostsim %s: exit %d, want %d and %q:\n%s%s", tt.args, code, tt.code, tt.says, stdout, stderr)
		}
		if (code != 0) != (stderr != "") {
			t.Errorf("hostsim %s: exit %d with %q on stderr", tt.args, code, stderr)
		}
	}
}

func TestInspectJSON(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.wasm")
	if err := os.WriteFile(bad, lacking, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, loads := range map[string]bool{bad: false, guest(t): true} {
		_, stdout, _ := command("inspect", path, "--json")
		var r struct {
			File, Profile, ABI string
			Loads              bool
			Size               int
			Imports            []struct{ Module, Name string }
			Verdicts           []struct{ Missing []string }
		}
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%v in %s", err, stdout)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if r.File != path || r.Profile != "envoy-1.40" || r.ABI != "0.2.1" || r.Loads != loads || int64(r.Size) != info.Size() ||
			len(r.Imports) == 0 || len(r.Verdicts) != 3 || (len(r.Verdicts[0].Missing) == 0) != loads {
			t.Errorf("%s: %s", path, stdout)
		}
	}
}

// serving is a serve command that runs.
type serving struct {
	url     string
	stdout  *bufio.Reader
	stop    context.CancelFunc
	exited  chan int
	stderr  bytes.Buffer
	address string
}

// startServe runs serve until the test's end and waits for its first line.
func startServe(t *testing.T, args ...string) *serving {
	t.Helper()
	return start(t, "serve", args...)
}

// start is startServe for a command that serves.
func start(t *testing.T, name string, args ...string) *serving {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, w := io.Pipe()
	s := &serving{stdout: bufio.NewReader(out), stop: stop, exited: make(chan int, 1)}
	go func() {
		s.exited <- run(ctx, append([]string{name, "--listen", "127.0.0.1:0"}, args...), w, &s.stderr)
		close(s.exited)
		w.Close()
	}()
	t.Cleanup(func() { stop(); go io.Copy(io.Discard, out); <-s.exited })
	line, err := s.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, s.stderr.String())
	}
	s.url, _, _ = strings.Cut(strings.TrimPrefix(line, "Listening on "), " ")
	s.address = strings.TrimPrefix(s.url, "http://")
	go io.Copy(io.Discard, s.stdout)
	return s
}

func chat(t *testing.T, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest("POST", url+"/v1/chat/completions", strings.NewReader(`{"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// Without a plugin the simulated replicas take turns, and say who they are; the signal ends it with exit 0.
func TestServeWithoutPlugin(t *testing.T) {
	s := startServe(t, "--sim-replicas", "3")
	seen := map[string]int{}
	for range 9 {
		resp, text := chat(t, s.url)
		who := resp.Header.Get(replica.ReplicaHeader)
		if resp.StatusCode != 200 || !strings.Contains(text, "Replica "+who+" had ") {
			t.Fatalf("%d from %q: %s", resp.StatusCode, who, text)
		}
		seen[who]++
	}
	for who, n := range seen {
		if n != 3 {
			t.Errorf("%s answered %d of 9", who, n)
		}
	}
	s.stop()
	if code := <-s.exited; code != 0 {
		t.Errorf("exit %d: %s", code, s.stderr.String())
	}
}

func TestServeWithPluginAndUpstreams(t *testing.T) {
	sim, err := startFleet(3, replica.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.stop()
	s := startServe(t, "--wasm", guest(t), "--upstream", "one="+strings.Join(sim.addresses[:2], ","), "--upstream", "two="+sim.addresses[2])
	for _, want := range sim.addresses[:2] {
		resp, _ := chat(t, s.url, "x-pick", want)
		if got := resp.Header.Get(replica.ReplicaHeader); got != want {
			t.Errorf("the plugin picked %s, but %s answered", want, got)
		}
	}
	if resp, text := chat(t, s.url, "x-do", "reply"); resp.StatusCode != 418 {
		t.Errorf("the plugin's own answer: %d %s", resp.StatusCode, text)
	}
}

func TestPortInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	code, _, stderr := command("serve", "--sim-replicas", "1", "--listen", ln.Addr().String())
	if code != 1 || !strings.HasSuffix(stderr, "--listen 127.0.0.1:8082 (make serve LISTEN=127.0.0.1:8082)\n") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestReadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(path, []byte("{ }"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"": "", ` {"a":1}`: `{"a":1}`, path: "{ }"} {
		if got, err := readConfig(flag); err != nil || string(got) != want {
			t.Errorf("--config %q: %q, error %v, want %q", flag, got, err, want)
		}
	}
}

func TestPluginTextCannotSteerTheTerminal(t *testing.T) {
	if got, want := printable("a\x1b[2J\tb\xff\r\nc"), "a?[2J\tb??\nc"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestVersion(t *testing.T) {
	if code, out, _ := command("--version"); code != 0 || out != "hostsim version "+version.Number+"\n" {
		t.Errorf("%d %q", code, out)
	}
}
