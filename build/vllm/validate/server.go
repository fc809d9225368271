package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/vllm/engine"
)

// model is the name under which the tiny model is served.
const model = "tiny"

// patience is how long an engine may take to start, or to end by itself.
const (
	patience = 10 * time.Minute
	parting  = 30 * time.Second
)

var errServer = errors.New("validate: vLLM")

// server is a running vLLM.
type server struct {
	url    string
	cmd    *exec.Cmd
	exited chan struct{}
	home   string
}

// serve starts vLLM and returns when it answers. What it writes goes to a file in its own temporary folder, whose end
// the error shows. stop ends it.
func serve(ctx context.Context, e engine.Engine, s settings) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "vllm-validate-")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(home, "log"))
	if err != nil {
		os.RemoveAll(home)
		return nil, err
	}
	defer log.Close()
	flags := append([]string{"serve", e.Model(), "--host", "127.0.0.1", "--port", strconv.Itoa(port)}, s.flags()...)
	v := &server{url: fmt.Sprint("http://127.0.0.1:", port), cmd: exec.Command(e.Command(), flags...),
		exited: make(chan struct{}), home: home}
	// nobind: on a machine with other work, threads bound to its first cores would wait for each other.
	v.cmd.Env = append(os.Environ(), "VLLM_SERVER_DEV_MODE=1", "VLLM_NO_USAGE_STATS=1", "HF_HUB_OFFLINE=1",
		"VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1",
		"VLLM_CACHE_ROOT="+home, "VLLM_CONFIG_ROOT="+home, "HF_HOME="+home)
	v.cmd.Stdout, v.cmd.Stderr = log, log
	// It ends with this process, however that ends, and never by a Ctrl-C of its own.
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := v.cmd.Start(); err != nil {
		os.RemoveAll(home)
		return nil, err
	}
	go func() {
		_ = v.cmd.Wait()
		close(v.exited)
	}()
	if err := v.ready(ctx); err != nil {
		text, _ := os.ReadFile(log.Name())
		v.stop()
		return nil, fmt.Errorf("%w: %w; its last lines:\n%s", errServer, err, text[max(0, len(text)-4000):])
	}
	return v, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// ready waits until the server answers.
func (v *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := v.ask(ctx, http.MethodGet, "/health", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-v.exited:
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// stop ends all of its processes and removes what it has written.
func (v *server) stop() {
	_ = v.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-v.exited:
	case <-time.After(parting):
	}
	_ = syscall.Kill(-v.cmd.Process.Pid, syscall.SIGKILL) // whoever has outlived the first
	<-v.exited
	os.RemoveAll(v.home)
}

// ask sends in as JSON, if there is any, and reads the answer into out: JSON, or *[]byte, or nil.
func (v *server) ask(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	q, err := http.NewRequestWithContext(ctx, method, v.url+path, body)
	if err != nil {
		return err
	}
	q.Header.Set("content-type", "application/json")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: %s %s: %s: %.300s", errServer, method, path, answer.Status, text)
	}
	if err != nil || out == nil {
		return err
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = text
		return nil
	}
	return json.Unmarshal(text, out)
}

// gauge reads a number that /metrics has once, or what is in a label of it.
func (v *server) gauge(ctx context.Context, pattern string) (int, error) {
	var text []byte
	if err := v.ask(ctx, http.MethodGet, "/metrics", nil, &text); err != nil {
		return 0, err
	}
	m := regexp.MustCompile(pattern).FindAllSubmatch(text, -1)
	if len(m) != 1 {
		return 0, fmt.Errorf("%w: /metrics has %d of %s", errServer, len(m), pattern)
	}
	n, err := strconv.ParseFloat(string(m[0][1]), 64)
	return int(n), err
}

func (v *server) blocks(ctx context.Context) (int, error) {
	return v.gauge(ctx, `(?m)^vllm:cache_config_info\{.*[{,]num_gpu_blocks="(\d+)"`)
}

func (v *server) preemptions(ctx context.Context) (int, error) {
	return v.gauge(ctx, `(?m)^vllm:num_preemptions_total\{.*\} (\S+)$`)
}

// reset empties the prefix cache. The engine refuses while a request holds blocks, as one does for a moment after its
// answer is sent.
func (v *server) reset(ctx context.Context) error {
	for range 100 {
		var said struct{ Success bool }
		if err := v.ask(ctx, http.MethodPost, "/reset_prefix_cache", nil, &said); err != nil || said.Success {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%w: does not empty its prefix cache", errServer)
}

// complete asks for the completion of a prompt of tokens and returns how many of them were in the cache.
func (v *server) complete(ctx context.Context, prompt []int, r *request) (cached int, err error) {
	in := map[string]any{"model": model, "prompt": prompt, "max_tokens": r.Output, "temperature": 0, "ignore_eos": true}
	if r.Generated != nil {
		in["allowed_token_ids"] = []int{answerToken(r.Turn)}
	}
	var out struct {
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Details    *struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := v.ask(ctx, http.MethodPost, "/v1/completions", in, &out); err != nil {
		return 0, err
	}
	u := out.Usage
	if u.Details == nil || u.Prompt != r.Prompt || u.Completion != r.Output {
		return 0, fmt.Errorf("%w: session %d, turn %d: usage is %+v", errServer, r.Session, r.Turn, u)
	}
	return u.Details.Cached, nil
}
