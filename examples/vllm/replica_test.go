//go:build vllm

package vllm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/vllm/engine"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// kvTokens is the size of a replica's KV cache, in tokens, and kvBytes the same in bytes: of each token and each of two
// layers, two heads of 32 keys and 32 values, in bfloat16.
const (
	kvTokens = 32_768
	kvBytes  = kvTokens * 2 * 2 * (32 + 32) * 2
)

// forThisMachine are the flags besides README's: a small model on one CPU. 32 is the smallest block for CPUs.
var forThisMachine = []string{"--served-model-name", "tiny", "--max-model-len", "8192", "--block-size", "32",
	"--kv-cache-memory-bytes", strconv.Itoa(kvBytes), "--enforce-eager"}

// replica is one vLLM.
type replica struct {
	addr string
	log  *envoytest.Log
	*kept
}

// startReplicas starts n and waits until all of them serve. The test's end ends them, and all that they started.
func startReplicas(t *testing.T, n int) []*replica {
	t.Helper()
	e, err := engine.Find(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	var all []*replica
	for range n {
		all = append(all, startReplica(t, e))
	}
	for _, r := range all {
		eventually(t, "vLLM on "+r.addr+" to serve", func() string {
			select {
			case <-r.exited:
				t.Fatalf("vLLM has ended:\n%s", r.log.Tail(40))
			default:
			}
			_, err := r.ask(http.MethodGet, "/health")
			if err != nil {
				return err.Error()
			}
			return ""
		})
		r.complete(t, "The first answer of a replica takes many times as long as the next.")()
	}
	return all
}

func startReplica(t *testing.T, e engine.Engine) *replica {
	t.Helper()
	port, err := envoytest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{addr: fmt.Sprint("127.0.0.1:", port), log: &envoytest.Log{}}
	flags := slices.Concat(readmeFlags(t, e.Model(), port), forThisMachine)
	home := t.TempDir() // nothing is to be left in the user's folders
	r.kept = keepRunning(t, r.log, []string{"VLLM_SERVER_DEV_MODE=1", "VLLM_NO_USAGE_STATS=1", "HF_HUB_OFFLINE=1",
		"VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1",
		"VLLM_CACHE_ROOT=" + home, "VLLM_CONFIG_ROOT=" + home, "HF_HOME=" + home},
		append([]string{e.Command()}, flags...)...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of vLLM on %s:\n%s", r.addr, r.log.Tail(20))
		}
	})
	return r
}

// readmeFlags are the arguments of README's command `vllm serve`, for that model and port.
func readmeFlags(t *testing.T, model string, port int) []string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^vllm (serve .*)$`).FindSubmatch(page)
	if m == nil {
		t.Fatal("README.md has no line that begins with `vllm serve`")
	}
	line := string(m[1])
	edits := [][2]string{
		{" $MODEL ", " " + model + " "}, {"--host 0.0.0.0", "--host 127.0.0.1"}, {"--port 8000", fmt.Sprint("--port ", port)},
	}
	for _, edit := range edits {
		if strings.Count(line, edit[0]) != 1 {
			t.Fatalf("README.md's vllm %s: no %q", line, edit[0])
		}
		line = strings.Replace(line, edit[0], edit[1], 1)
	}
	return strings.Fields(line)
}

func (r *replica) ask(method, path string) (string, error) {
	request, err := http.NewRequest(method, "http://"+r.addr+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := (&http.Client{Timeout: 20 * time.Second}).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %.200s", method, path, answer.Status, body)
	}
	return string(body), err
}

// tokens are what a replica counts, or what answers say: tokens of prompts, and those of them that the cache held.
type tokens struct {
	Queried int `json:"queried"`
	Hit     int `json:"hit"`
}

func (c tokens) minus(d tokens) tokens { return tokens{c.Queried - d.Queried, c.Hit - d.Hit} }
func (c tokens) plus(d tokens) tokens  { return tokens{c.Queried + d.Queried, c.Hit + d.Hit} }

// rate is the share of hits, 0 to 1.
func (c tokens) rate() float64 { return float64(c.Hit) / float64(c.Queried) }

var counter = regexp.MustCompile(`(?m)^vllm:prefix_cache_(queries|hits)_total\{.*\} (\S+)$`)

// counters reads the replica's.
func (r *replica) counters() (tokens, error) {
	text, err := r.ask(http.MethodGet, "/metrics")
	if err != nil {
		return tokens{}, err
	}
	found := map[string]int{}
	for _, m := range counter.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return tokens{}, err
		}
		found[m[1]] += int(n)
	}
	if len(found) != 2 {
		return tokens{}, fmt.Errorf("/metrics lacks the counters of the prefix cache: %v", found)
	}
	return tokens{found["queries"], found["hits"]}, nil
}

// forget empties the replica's prefix cache, which it refuses while a request still holds blocks of it.
func (r *replica) forget(t *testing.T) {
	t.Helper()
	eventually(t, "an empty prefix cache", func() string {
		text, err := r.ask(http.MethodPost, "/reset_prefix_cache")
		var said struct{ Success bool }
		if err == nil {
			err = json.Unmarshal([]byte(text), &said)
		}
		if err != nil || !said.Success {
			return fmt.Sprintf("%s, %v", text, err)
		}
		return ""
	})
}

// eventually polls until nothing is missing, or ends the test with what is. A replica takes half a minute to start on an
// idle machine, and many times that on a busy one.
func eventually(t *testing.T, what string, missing func() string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		m := missing()
		if m == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s: %s", what, m)
		}
	}
}
