//go:build peer

package vllmrouter

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/vllmrouter/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// peerCommand is vllm-router with those flags, not started.
func peerCommand(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	cmd, err := wheel.Command(t.Context(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// peer is a running vllm-router.
type peer struct {
	router
	t        *testing.T
	replicas map[string]*replica
	members  map[string]bool // address: healthy
	log      *peerLog
}

// startPeer starts it before the replicas, with environment variables on top, and waits until it has seen them healthy.
func startPeer(t *testing.T, policy string, replicas []*replica, members []string, env ...string) *peer {
	t.Helper()
	var ports [2]string
	for i := range ports {
		port, err := envoytest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = strconv.Itoa(port)
	}
	flags := []string{"--port", ports[0], "--prometheus-port", ports[1], "--policy", policy, "--log-level", "info",
		"--health-check-interval-secs", "1", "--health-failure-threshold", "1", "--health-success-threshold", "1",
		"--worker-startup-check-interval", "1", "--worker-startup-timeout-secs", "30",
		"--disable-retries", "--disable-circuit-breaker", "--worker-urls"}
	for _, m := range members {
		flags = append(flags, "http://"+m)
	}
	cmd := peerCommand(t, flags...)
	cmd.Env = append(cmd.Env, env...)
	log := &peerLog{counts: map[string]placement{}}
	cmd.Stdout = log.reader(t)
	cmd.Stderr = cmd.Stdout
	exited := make(chan struct{})
	if err := envoytest.RunTied(cmd, exited); err != nil {
		t.Fatalf("%v: python3 is needed to start vllm-router", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-exited
		}
		log.show(t)
	})
	p := &peer{router: newRouter(t, "http://127.0.0.1:"+ports[0], 1), t: t, replicas: map[string]*replica{}, members: map[string]bool{}, log: log}
	for _, r := range replicas {
		p.replicas[r.address] = r
	}
	for _, m := range members {
		p.members[m] = true
	}
	eventually(t, "vllm-router starts", func() string {
		select {
		case <-exited:
			t.Fatal("vllm-router has exited")
		default:
		}
		return p.mismatch()
	})
	return p
}

// set makes the members, and which of them are healthy, what they are in want, and waits until the router knows.
func (p *peer) set(want map[string]bool) {
	p.t.Helper()
	for address := range p.members {
		if _, stays := want[address]; !stays {
			p.worker("remove_worker", address)
		}
	}
	for address, healthy := range want {
		p.replicas[address].sick.Store(!healthy)
	}
	for address := range want {
		if _, known := p.members[address]; !known {
			p.worker("add_worker", address)
		}
	}
	p.members = want
	eventually(p.t, "vllm-router learns of its replicas", p.mismatch)
}

func (p *peer) worker(action, address string) {
	p.t.Helper()
	if a, err := p.do("POST", "/"+action+"?url="+url.QueryEscape("http://"+address), ""); err != nil || a.status != 200 {
		p.t.Fatalf("%s %s: %d %s, %v", action, address, a.status, a.body, err)
	}
}

// mismatch says what the router does not know yet of its replicas; "" is nothing.
func (p *peer) mismatch() string {
	a, err := p.do("GET", "/workers", "")
	if err != nil {
		return err.Error()
	}
	var list struct {
		Workers []struct {
			URL     string
			Healthy bool `json:"is_healthy"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &list); err != nil {
		return fmt.Sprintf("/workers: %v: %s", err, a.body)
	}
	got, want := []string{}, []string{}
	for _, w := range list.Workers {
		got = append(got, fmt.Sprint(strings.TrimPrefix(w.URL, "http://"), " ", w.Healthy))
	}
	for address, healthy := range p.members {
		want = append(want, fmt.Sprint(address, " ", healthy))
	}
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("it knows %v, want %v", got, want)
}

// placement is what the router's log says of a new session.
type placement struct {
	replica string
	open    int // sessions of that replica, this one included
}

// peerLog follows the router's log, the only place where it tells how many sessions it counts.
type peerLog struct {
	mu     sync.Mutex
	counts map[string]placement // by session id, the latest
	last   []string
}

var placed = regexp.MustCompile(`SLL: new session '(.*)' -> replica 'http://(.*)' \(active sessions on replica: (\d+)\)`)

// colours are terminal escapes, of which the log is full.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (l *peerLog) reader(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewReader(r); ; {
			line, err := lines.ReadString('\n')
			l.take(line)
			if err != nil {
				_, _ = io.Copy(io.Discard, r)
				return
			}
		}
	}()
	t.Cleanup(func() { // after the process has ended
		w.Close()
		<-done
		r.Close()
	})
	return w
}

func (l *peerLog) take(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := placed.FindStringSubmatch(line); m != nil {
		n, _ := strconv.Atoi(m[3])
		l.counts[m[1]] = placement{m[2], n}
	}
	if l.last = append(l.last, strings.TrimSpace(colours.ReplaceAllString(line, ""))); len(l.last) > 30 {
		l.last = l.last[1:]
	}
}

// of returns what the log says of the session's placement.
func (l *peerLog) of(id string) (placement, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.counts[id]
	return p, ok
}

// show prints the end of the log if the test has failed.
func (l *peerLog) show(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.Failed() {
		t.Logf("vllm-router's last lines:\n%s", strings.Join(l.last, "\n"))
	}
}

// forget drops what the log said of the session.
func (l *peerLog) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.counts, id)
}
