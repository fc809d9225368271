package docker

import (
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
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The image's command with the files where the image has them, on an Envoy outside of Docker: the replicas are discovered,
// sessions stay, and Compose's health check passes. Three addresses of this machine stand for what Docker's DNS answers.
func TestCommand(t *testing.T) {
	bin, err := wheel.Find(t.Context(), wheel.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	image, gateway := t.TempDir(), compose(t).Services["gateway"]
	free := func() string {
		port, err := envoytest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(port)
	}
	port, admin, backend := free(), free(), free()
	var hosts []string
	for i := range 3 {
		r, err := envoytest.OpenReplica(fmt.Sprintf("127.0.0.%d:%s", i+2, backend))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		hosts = append(hosts, fmt.Sprintf("{endpoint: {address: {socket_address: {address: 127.0.0.%d, port_value: %s}}}}", i+2, backend))
	}
	config := read(t, gateway.Volumes[0].Source)
	const byName = "{endpoint: {address: {socket_address: {address: replicas, port_value: 8000}}}}"
	if strings.Count(config, byName) != 1 {
		t.Fatalf("the configuration has no %s", byName)
	}
	config = strings.NewReplacer(byName, strings.Join(hosts, ", "),
		"port_value: 10000}", "port_value: "+port+"}", "port_value: 9901}", "port_value: "+admin+"}").Replace(config)
	put := func(name, text string) {
		name = filepath.Join(image, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(gateway.Volumes[0].Target, config)
	folders, copies := instructions(t, "WORKDIR"), instructions(t, "COPY")
	folder, last := folders[len(folders)-1], strings.Fields(copies[len(copies)-1])
	wasm, err := envoytest.Wasm(root)
	if err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(folder, last[len(last)-1]), read(t, wasm))

	commands := instructions(t, "CMD")
	var args []string
	if err := json.Unmarshal([]byte(commands[len(commands)-1]), &args); err != nil || args[0] != "envoy" {
		t.Fatalf("CMD %s: %v", commands[len(commands)-1], err)
	}
	for i, arg := range args {
		args[i] = regexp.MustCompile(`^/`).ReplaceAllString(arg, image+"/")
	}
	cmd := exec.Command(bin, append(args[1:], "--disable-hot-restart")...) // other Envoys run beside
	log, exited := &envoytest.Log{}, make(chan struct{})
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(image, folder), log, log
	if err := envoytest.RunTied(cmd, exited); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); <-exited }()

	check := gateway.Healthcheck.Test
	if check[0] != "CMD" {
		t.Fatalf("health check %q", check)
	}
	healthy := func() bool {
		probe := append([]string(nil), check[1:]...)
		probe[len(probe)-1] = strings.Replace(probe[len(probe)-1], "/9901", "/"+admin, 1)
		return exec.CommandContext(t.Context(), probe[0], probe[1:]...).Run() == nil
	}
	if healthy() {
		t.Error("healthy before Envoy can be ready")
	}
	until(t, log, exited, "healthy", healthy)
	homes := map[string]string{}
	for turn := range 3 {
		for i := range 9 {
			session := fmt.Sprint("s", i)
			home := ask(t, net.JoinHostPort("127.0.0.1", port), session)
			if turn > 0 && home != homes[session] {
				t.Errorf("turn %d of %s went to %s, before to %s", turn, session, home, homes[session])
			}
			homes[session] = home
		}
	}
	used := map[string]int{}
	for _, home := range homes {
		used[home]++
	}
	if len(used) != 3 {
		t.Errorf("sessions are on %v, want three replicas", used)
	}
}

// ask sends a turn and returns the replica that Pinwheel names in the answer.
func ask(t *testing.T, addr, session string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Session-ID", session)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	if res.StatusCode != 200 {
		t.Fatalf("status %d", res.StatusCode)
	}
	return res.Header.Get("x-pinwheel-replica")
}

func until(t *testing.T, log *envoytest.Log, exited <-chan struct{}, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		select {
		case <-exited:
			t.Fatalf("Envoy ended:\n%s", log.Tail(20))
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s; Envoy says:\n%s", what, log.Tail(20))
		}
	}
}
