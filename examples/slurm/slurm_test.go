// Package slurm holds the example to what really happens, with stand-ins for Slurm's commands and for vLLM, and a real
// Envoy. The hosts of the job are addresses of this machine, which all of 127.0.0.0/8 are on Linux.
package slurm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

const root = "../.."

// TestMain plays curl when a script calls it, for a machine need not have it.
func TestMain(m *testing.M) {
	envoytest.ActAsCurl()
	os.Exit(m.Run())
}

// patience bounds every wait of these tests; none depends on how long it takes.
const patience = 2 * time.Minute

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := envoytest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}

func envoy(t *testing.T) string {
	t.Helper()
	if _, err := envoytest.Wasm(root); err != nil {
		t.Fatal(err)
	}
	bin, err := wheel.Find(t.Context(), wheel.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// job is an Envoy whose configuration the script has written.
type job struct {
	port, backend, folder string
	envoy                 *envoytest.Envoy
	replicas              map[string]*envoytest.Replica // by host
}

// configure runs the script for these hosts, on which replicas are opened if there are none yet.
func (j *job) configure(t *testing.T, hosts ...string) {
	t.Helper()
	for _, host := range hosts {
		if j.replicas[host] == nil {
			r, err := envoytest.OpenReplica(host + ":" + j.backend)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Close)
			j.replicas[host] = r
		}
	}
	env := []string{"BACKEND_PORT=" + j.backend, "PORT=" + j.port, "ADMIN_PORT=0", "SECRET=sesame"}
	out, err := script(t, env, append([]string{j.folder}, hosts...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func script(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"examples/slurm/envoy-config.sh"}, args...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// turn sends a turn of a session and returns its status and the host that served it.
func (j *job) turn(t *testing.T, session string) (status int, host string) {
	t.Helper()
	res := j.do(t, http.MethodGet, "/v1/models", "x-session-id", session)
	host, _, _ = strings.Cut(res.Header.Get(envoytest.ServedByHeader), ":")
	return res.StatusCode, host
}

// do sends a request without a body and reads the answer, which is then in its Status.
func (j *job) do(t *testing.T, method, path, name, value string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+j.port+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(name, value)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	res.Status = string(text)
	return res
}

// open is what the plugin's status says of open sessions, by host.
func (j *job) open(t *testing.T) map[string]int {
	t.Helper()
	res := j.do(t, http.MethodGet, "/pinwheel/status", "x-pinwheel-secret", "sesame")
	var status struct {
		Pools []struct {
			Replicas []struct {
				Address, State string
				Open           int `json:"open_sessions"`
			}
		}
	}
	if err := json.Unmarshal([]byte(res.Status), &status); err != nil || len(status.Pools) != 1 {
		t.Fatalf("status %d: %v in %s", res.StatusCode, err, res.Status)
	}
	open := map[string]int{}
	for _, r := range status.Pools[0].Replicas {
		if host, _, _ := strings.Cut(r.Address, ":"); r.State != "removed" {
			open[host] = r.Open
		}
	}
	return open
}

// What the script writes runs: sessions stay, replicas are replaced while Envoy runs, one that dies is left, and releases
// count.
func TestConfiguration(t *testing.T) {
	bin := envoy(t)
	j := &job{port: freePort(t), backend: freePort(t), folder: t.TempDir(), replicas: map[string]*envoytest.Replica{}}
	j.configure(t, "127.0.0.2", "127.0.0.3", "127.0.0.4")
	var err error
	j.envoy, err = envoytest.Start(t.Context(), envoytest.Options{
		Binary: bin, Bootstrap: filepath.Join(j.folder, "envoy.yaml"), Concurrency: 2, ReadyTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer j.envoy.Stop()

	homes := map[string]string{}
	for turn := range 3 {
		for i := range 9 {
			session := fmt.Sprint("s", i)
			status, host := j.turn(t, session)
			if status != 200 || turn > 0 && host != homes[session] {
				t.Errorf("turn %d of %s: %d from %q, was on %q", turn, session, status, host, homes[session])
			}
			homes[session] = host
		}
	}
	if open := j.open(t); fmt.Sprint(open) != "map[127.0.0.2:3 127.0.0.3:3 127.0.0.4:3]" {
		t.Errorf("open sessions %v, want three on each host", open)
	}

	// 127.0.0.4 is replaced by 127.0.0.5, while Envoy runs.
	j.configure(t, "127.0.0.2", "127.0.0.3", "127.0.0.5")
	until(t, "the plugin knows the new host", func() bool { _, ok := j.open(t)["127.0.0.5"]; return ok })
	for session, home := range homes {
		status, host := j.turn(t, session)
		if status != 200 || host == "127.0.0.4" || home != "127.0.0.4" && host != home {
			t.Errorf("after the update %s went to %q (%d), was on %q", session, host, status, home)
		}
		homes[session] = host
	}
	if open := j.open(t); len(open) != 3 || open["127.0.0.5"] == 0 || open["127.0.0.2"]+open["127.0.0.3"]+open["127.0.0.5"] != 9 {
		t.Errorf("open sessions %v, want nine, some of them on the new host", open)
	}

	// 127.0.0.3 dies: as many turns fail as the page says, then its sessions live elsewhere.
	j.replicas["127.0.0.3"].Close()
	failed := 0
	for session, home := range homes {
		status, host := j.turn(t, session)
		for ; status != 200 && failed < 20; status, host = j.turn(t, session) {
			failed++
		}
		if status != 200 || host == "127.0.0.3" || home != "127.0.0.3" && host != home {
			t.Errorf("after a death %s went to %q (%d), was on %q", session, host, status, home)
		}
		if _, again := j.turn(t, session); again != host {
			t.Errorf("%s went to %q and then to %q", session, host, again)
		}
	}
	if failed < 3 || failed > 5 {
		t.Errorf("%d turns failed, want three, or one more for each of two workers", failed)
	}

	for session := range homes {
		if res := j.do(t, http.MethodPost, "/finish_session", "x-session-id", session); res.StatusCode != 200 {
			t.Errorf("release: %d %s", res.StatusCode, res.Status)
		}
	}
	for host, n := range j.open(t) {
		if n != 0 {
			t.Errorf("%d sessions are still open on %s", n, host)
		}
	}
}

// What is wrong is said in one line, and what Envoy reads stays as it was.
func TestBadInput(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		env  []string
		args []string
		want string
	}{
		{nil, nil, "usage: envoy-config.sh FOLDER [HOST[:PORT]...]"},
		{nil, []string{folder, "127.0.0.2:http"}, "the port of '127.0.0.2:http' (HOST or HOST:PORT) is 'http'; want a number from 1 to 65535"},
		{nil, []string{folder, "127.0.0.2:08100"}, "is '08100'; want a number"},
		{nil, []string{folder, "127.0.0.2:65536"}, "is '65536'; want a number"},
		{[]string{"BACKEND_PORT=65535", "RANKS=2"}, []string{folder, "127.0.0.2"}, "BACKEND_PORT is '65535'; want a number from 1 to 65534"},
		{[]string{"RANKS=0"}, []string{folder, "127.0.0.2"}, "RANKS is '0'"},
		{[]string{"BACKEND_PORT=a[$(touch " + folder + "/ran)]"}, []string{folder, "127.0.0.2"}, "BACKEND_PORT is 'a[$(touch"},
		{[]string{"PORT=80}|; e touch " + folder + "/ran"}, []string{folder, "127.0.0.2"}, "PORT is '80}|; e touch"},
		{[]string{"ADMIN_PORT="}, []string{folder, "127.0.0.2", ""}, "host '' has no IPv4 address"},
		{[]string{"SECRET=a&b"}, []string{folder, "127.0.0.2"}, "SECRET has one of"},
		{[]string{`SECRET=a"b`}, []string{folder, "127.0.0.2"}, "SECRET has one of"},
		{[]string{"SECRET=a|b"}, []string{folder, "127.0.0.2"}, "SECRET has one of"},
		{[]string{`SECRET=a\b`}, []string{folder, "127.0.0.2"}, "SECRET has one of"},
		{[]string{"SECRET=a\nb"}, []string{folder, "127.0.0.2"}, "SECRET has one of"},
		{nil, []string{folder, "--help"}, "host '--help' has no IPv4 address"},
		{nil, []string{folder, "127.0.0.2\n127.0.0.3"}, `host $'127.0.0.2\n127.0.0.3' has no IPv4 address`},
		{nil, []string{"go.mod/x", "127.0.0.2"}, "mkdir: cannot create directory"},
		{nil, []string{folder + "/a&b", "127.0.0.2"}, "FOLDER has one of"},
		{nil, []string{folder}, "SLURM_JOB_NODELIST: no HOST is named, and this is no Slurm job"},
		{nil, []string{folder, "no.such.host.invalid"}, "host 'no.such.host.invalid' has no IPv4 address"},
		{[]string{"WASM=/nowhere.wasm"}, []string{folder, "127.0.0.2"}, "no plugin at /nowhere.wasm; run `make wasm`"},
	} {
		out, err := script(t, append(c.env, "SLURM_JOB_NODELIST="), c.args...)
		if err == nil || !strings.Contains(out, c.want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%q: %v, printed %q, want one line with %q", c.args, err, out, c.want)
		}
	}
	if files, _ := os.ReadDir(folder); len(files) != 0 {
		t.Errorf("files were written: %v", files)
	}
}

// stand-ins for Slurm and vLLM. srun starts what vLLM would be on all hosts of the job.
var stubs = map[string]string{
	"sbatch":   "SLURM_JOB_NODELIST='node[2-4]' exec bash \"$@\"",
	"scontrol": "[ \"$*\" = 'show hostnames node[2-4]' ] || exit 2; printf '127.0.0.%s\\n' 2 3 4",
	"srun": "case $* in *' vllm serve Qwen/Qwen3-8B --host 0.0.0.0 --port '*) ;; *) exit 2;; esac\n" +
		"exec $REPLICAS 127.0.0.2:$BACKEND_PORT 127.0.0.3:$BACKEND_PORT 127.0.0.4:$BACKEND_PORT",
}

// cluster is a folder with the stand-ins, and the environment in which they are found.
func cluster(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "replicas"), "./examples/envoy/replicas")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, text := range stubs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path, err := envoytest.PathWithCurl(dir)
	if err != nil {
		t.Fatal(err)
	}
	sdk, err := filepath.Abs(filepath.Join(root, "dist", "clients"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(sdk, "openai")); err != nil {
		t.Fatalf("%v; run `make clients`", err)
	}
	return dir, []string{
		"PATH=" + dir + ":" + path, "REPLICAS=" + filepath.Join(dir, "replicas"), "PYTHONPATH=" + sdk, "PYTHONDONTWRITEBYTECODE=1",
		"NO_PROXY=127.0.0.1", "TMPDIR=" + dir,
		"PORT=" + freePort(t), "ADMIN_PORT=" + freePort(t), "BACKEND_PORT=" + freePort(t),
	}
}

// The README's commands run as printed, in one shell.
func TestReadmeCommands(t *testing.T) {
	bin := envoy(t)
	dir, env := cluster(t)
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.NewReplacer("make wasm", ":", "/tmp/llm", dir+"/llm").Replace(strings.Join(envoytest.ShellBlocks(string(page)), "\n"))
	out, err := envoytest.RunScript(t.Context(), root, commands, append(env, "ENVOY="+bin)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !regexp.MustCompile(`(?m)^80 rollouts, 0 failed, 240 turns, \d+% of \d+ prompt tokens cached$`).MatchString(out) {
		t.Errorf("no rollouts in\n%s", out)
	}
	lds, err := os.ReadFile(filepath.Join(dir, "llm", "lds.yaml"))
	if err != nil || strings.Count(string(lds), `"127.0.0.2:`) != 8 || strings.Count(string(lds), `"127.0.0.3:`) != 8 {
		t.Errorf("want eight replicas on each of two hosts: %v\n%s", err, lds)
	}
}

// A job without a model, or without a command, starts nothing and says what it lacks.
func TestJobLacks(t *testing.T) {
	dir, env := cluster(t)
	for command, want := range map[string]string{
		"sbatch examples/slurm/pinwheel.sbatch true":                "MODEL: name the model: MODEL=",
		"MODEL=Qwen/Qwen3-8B sbatch examples/slurm/pinwheel.sbatch": "no COMMAND, with whose end",
	} {
		out, err := envoytest.RunScript(t.Context(), root, command, append(env, "MODEL=", "ENVOY=false")...)
		if err == nil || !strings.Contains(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %v, printed %q, want one line with %q", command, err, out, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "tmp.*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A part that ends before the command could begin ends the job, the other parts, and leaves nothing behind.
func TestPartEnds(t *testing.T) {
	envoy(t)
	dir, env := cluster(t)
	out, err := envoytest.RunScript(t.Context(), root, "MODEL=Qwen/Qwen3-8B sbatch examples/slurm/pinwheel.sbatch echo the command runs",
		append(env, "ENVOY=false")...)
	if err == nil || !strings.Contains(out, "pinwheel.sbatch: a part ended before http://127.0.0.") ||
		strings.Contains(out, "the command runs") {
		t.Errorf("%v\n%s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "tmp.*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The page's launch_router, called as prime-rl's templates call theirs, starts Envoy with the replicas that they name.
func TestLaunchRouter(t *testing.T) {
	envoy(t)
	here, dir := t.TempDir(), t.TempDir()
	project, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(here, "envoy"), []byte("#!/bin/sh\ncat \"$2\" \"${2%envoy.yaml}lds.yaml\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := envoytest.Blocks(string(page), "bash")
	if len(blocks) != 1 {
		t.Fatalf("the page has %d blocks of bash, want one", len(blocks))
	}
	function := strings.NewReplacer("/shared/pinwheel.wasm", "dist/pinwheel.wasm", "/shared/pinwheel", project).Replace(blocks[0])
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", function+`
launch_router regular " http://127.0.0.2:8100 http://127.0.0.2:8101 http://127.0.0.3:8100" 8000 sticky_least_loaded "$TMPDIR/log"
wait; cat "$TMPDIR/log"`)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "PATH="+here+":"+os.Getenv("PATH"), "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	const list = `"replicas": ["127.0.0.2:8100", "127.0.0.2:8101", "127.0.0.3:8100"],`
	for _, want := range []string{list, "0.0.0.0, port_value: 8000}", "lds_config"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, no %s in\n%s", err, want, out)
		}
	}
}
