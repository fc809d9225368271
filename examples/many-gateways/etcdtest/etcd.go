// Package etcdtest runs real etcd servers for tests, benchmarks and the example: alone or as a cluster, each to be killed, held
// and started again.
package etcdtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// ErrNoEtcd reports a machine without an etcd on its PATH.
var ErrNoEtcd = errors.New("etcdtest: no etcd on the PATH (Debian package etcd-server)")

// ErrNotReady reports an etcd that ended, or did not serve in time. The error carries the end of its log.
var ErrNotReady = errors.New("etcdtest: etcd is not ready")

// Compaction are the flags that the example recommends: each renewal of a session makes a revision, and etcd keeps all of them
// until it is told to compact.
var Compaction = []string{"--auto-compaction-mode=periodic", "--auto-compaction-retention=5m"}

// Options say how to start a server.
type Options struct {
	// Dir is where its data go; required. A server that is started again finds them there.
	Dir string
	// Port is that of its clients; 0 is any that is free.
	Port int
	// Args are further flags, of which the last one with a name counts.
	Args []string
}

// Server is one etcd process. Its methods may be called by several goroutines, those that start and end it by one at a time.
type Server struct {
	// Addr is host:port for clients; it stays the same when the server is started again.
	Addr string
	// Log is all that it has printed.
	Log *envoytest.Log

	args   []string
	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed after the process is reaped
}

// Start runs one server and returns once it serves. The process dies with this one (Linux).
func Start(ctx context.Context, o Options) (*Server, error) {
	all, err := start(ctx, 1, o)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// StartCluster runs n servers that are one cluster, and returns once each serves.
func StartCluster(ctx context.Context, n int, o Options) ([]*Server, error) { return start(ctx, n, o) }

func start(ctx context.Context, n int, o Options) ([]*Server, error) {
	if _, err := exec.LookPath("etcd"); err != nil {
		return nil, ErrNoEtcd
	}
	var all []*Server
	var peers, members []string
	for i := range n {
		port, err := o.Port, error(nil)
		if port == 0 {
			port, err = envoytest.FreePort()
		}
		peer, failed := envoytest.FreePort()
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
		all = append(all, &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Log: &envoytest.Log{}})
		peers = append(peers, fmt.Sprintf("http://127.0.0.1:%d", peer))
		members = append(members, fmt.Sprintf("member-%d=%s", i, peers[i]))
	}
	for i, s := range all {
		client, name := "http://"+s.Addr, fmt.Sprint("member-", i)
		s.args = append([]string{
			"--name", name, "--data-dir", filepath.Join(o.Dir, name), "--logger", "zap", "--log-level", "error", "--log-outputs", "stderr",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i], "--initial-cluster", strings.Join(members, ","),
		}, append(Compaction, o.Args...)...)
		if err := s.run(); err != nil {
			stop(all[:i])
			return nil, err
		}
	}
	for _, s := range all {
		if err := s.waitReady(ctx); err != nil {
			stop(all)
			return nil, err
		}
	}
	return all, nil
}

func stop(all []*Server) {
	for _, s := range all {
		s.Stop()
	}
}

func (s *Server) run() error {
	cmd, exited := exec.Command("etcd", s.args...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = s.Log, s.Log
	if err := envoytest.RunTied(cmd, exited); err != nil {
		return fmt.Errorf("etcdtest: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd, s.exited = cmd, exited
	return nil
}

// Again starts a server that was killed or stopped, and returns once it serves.
func (s *Server) Again(ctx context.Context) error {
	if err := s.run(); err != nil {
		return err
	}
	return s.waitReady(ctx)
}

// waitReady asks until the server answers what only a member with a leader can.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, exited := s.process()
	for {
		err := s.Healthy(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("%w: it ended; its last words:\n%s", ErrNotReady, s.Log.Tail(20))
		case <-ctx.Done():
			return fmt.Errorf("%w: %w; its last words:\n%s", ErrNotReady, err, s.Log.Tail(20))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Healthy asks for the server's health: of a member, whether its cluster has a leader and takes writes.
func (s *Server) Healthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr+"/health", nil)
	if err != nil {
		return err
	}
	reply, err := fresh.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("etcdtest: /health of %s: %s", s.Addr, reply.Status)
	}
	return nil
}

// fresh keeps no connection: one to a server that was killed would fail the next request.
var fresh = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (s *Server) process() (*exec.Cmd, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd, s.exited
}

// Pid is the process id of the server that was started last.
func (s *Server) Pid() int {
	cmd, _ := s.process()
	return cmd.Process.Pid
}

// Exited is closed when the server that was started last has ended.
func (s *Server) Exited() <-chan struct{} {
	_, exited := s.process()
	return exited
}

// Kill ends the server as a crash does.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the server in order. Stopping twice is harmless.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

func (s *Server) end(by syscall.Signal) {
	cmd, exited := s.process()
	_ = cmd.Process.Signal(by)
	_ = cmd.Process.Signal(syscall.SIGCONT) // a held process ends only then
	select {
	case <-exited:
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		<-exited
	}
}

// Hold has the server do nothing, with its connections open, until Release.
func (s *Server) Hold() { s.signal(syscall.SIGSTOP) }

// Release ends a Hold.
func (s *Server) Release() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	cmd, _ := s.process()
	_ = cmd.Process.Signal(sig)
}

// Do sends a request to the JSON gateway and returns the reply. The token may be empty. A status other than 200 is an error.
func (s *Server) Do(ctx context.Context, path, token string, request any) ([]byte, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Addr+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if token != "" {
		post.Header.Set("Authorization", token)
	}
	reply, err := http.DefaultClient.Do(post)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcdtest: %s: %s: %s", path, reply.Status, text)
	}
	return text, err
}

// Prefix is the range of all keys that begin so, as etcd's requests have it.
func Prefix(prefix string) map[string]any {
	end := []byte(prefix)
	end[len(end)-1]++
	return map[string]any{"key": B64(prefix), "range_end": base64.StdEncoding.EncodeToString(end)}
}

// B64 is a text as etcd's JSON has it.
func B64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// Keys returns all keys that begin so, with their values.
func (s *Server) Keys(ctx context.Context, prefix, token string) (map[string]string, error) {
	text, err := s.Do(ctx, "/v3/kv/range", token, Prefix(prefix))
	if err != nil {
		return nil, err
	}
	var reply struct {
		KVs []struct{ Key, Value []byte }
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return nil, err
	}
	keys := map[string]string{}
	for _, kv := range reply.KVs {
		keys[string(kv.Key)] = string(kv.Value)
	}
	return keys, nil
}

// User is a name with a password.
type User struct{ Name, Password string }

// EnableAuth has the server ask for a password: root may do everything, the gateways' user read and write what begins with the
// prefix. It returns a token of root.
func (s *Server) EnableAuth(ctx context.Context, root, gateway User, prefix string) (token string, err error) {
	type m = map[string]any
	perm := m{"permType": "READWRITE"}
	for name, v := range Prefix(prefix) {
		perm[name] = v
	}
	for _, call := range []struct {
		path string
		body m
	}{
		{"user/add", m{"name": root.Name, "password": root.Password}},
		{"role/add", m{"name": "root"}},
		{"user/grant", m{"user": root.Name, "role": "root"}},
		{"user/add", m{"name": gateway.Name, "password": gateway.Password}},
		{"role/add", m{"name": "gateways"}},
		{"role/grant", m{"name": "gateways", "perm": perm}},
		{"user/grant", m{"user": gateway.Name, "role": "gateways"}},
		{"enable", m{}},
	} {
		if _, err := s.Do(ctx, "/v3/auth/"+call.path, "", call.body); err != nil {
			return "", err
		}
	}
	return s.Authenticate(ctx, root)
}

// Authenticate returns a token, which etcd forgets when it is started again.
func (s *Server) Authenticate(ctx context.Context, u User) (string, error) {
	text, err := s.Do(ctx, "/v3/auth/authenticate", "", map[string]any{"name": u.Name, "password": u.Password})
	if err != nil {
		return "", err
	}
	var reply struct{ Token string }
	return reply.Token, json.Unmarshal(text, &reply)
}

// Leader returns which of the servers leads their cluster, or nil.
func Leader(ctx context.Context, all []*Server) *Server {
	for _, s := range all {
		text, err := s.Do(ctx, "/v3/maintenance/status", "", map[string]any{})
		var reply struct {
			Header struct {
				Member string `json:"member_id"`
			}
			Leader string
		}
		if err == nil && json.Unmarshal(text, &reply) == nil && reply.Leader != "" && reply.Leader == reply.Header.Member {
			return s
		}
	}
	return nil
}

// DatabaseBytes is the size of the server's database, and how much of it is used.
func (s *Server) DatabaseBytes(ctx context.Context) (size, used int64, err error) {
	text, err := s.Do(ctx, "/v3/maintenance/status", "", map[string]any{})
	if err != nil {
		return 0, 0, err
	}
	var reply struct {
		Size int64 `json:"dbSize,string"`
		Used int64 `json:"dbSizeInUse,string"`
	}
	return reply.Size, reply.Used, json.Unmarshal(text, &reply)
}
