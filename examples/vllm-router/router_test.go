//go:build peer

package vllmrouter

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// router is what both sides have in common: the HTTP interface that clients see.
type router struct {
	url string
	// clients hold one connection each and take turns: in the embedded gateway that reaches all workers.
	clients []*http.Client
	sent    int
}

func newRouter(t *testing.T, url string, connections int) router {
	r := router{url: url}
	for range connections {
		transport := &http.Transport{MaxConnsPerHost: 1}
		t.Cleanup(transport.CloseIdleConnections)
		r.clients = append(r.clients, &http.Client{Transport: transport, Timeout: 2 * time.Minute})
	}
	return r
}

// answer is what a client sees.
type answer struct {
	status  int
	replica string // who served; empty if the router answered itself
	reason  string // Pinwheel's, with debug headers on
	body    string
}

// do sends a request.
func (r *router) do(method, path, body string, headers ...[2]string) (answer, error) {
	request, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for _, h := range headers {
		request.Header[h[0]] = append(request.Header[h[0]], h[1]) // spelled as given
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	r.sent++
	resp, err := r.clients[r.sent%len(r.clients)].Do(request)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get(servedBy), resp.Header.Get("X-Pinwheel-Reason"), string(text)}, err
}

// chat is the path of turns, and prompt the body of one.
const (
	chat   = "/v1/chat/completions"
	prompt = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
)

// turn sends a turn of the session and returns the replica that served it.
func (r *router) turn(id string) (string, error) {
	a, err := r.do("POST", chat, prompt, [2]string{"X-Session-Id", id})
	if err == nil && (a.status != 200 || a.replica == "") {
		err = fmt.Errorf("a turn of %s: status %d: %s", id, a.status, a.body)
	}
	return a.replica, err
}

// finish ends the session.
func (r *router) finish(id string) error {
	a, err := r.do("POST", "/finish_session?session_id="+url.QueryEscape(id), "")
	if want := fmt.Sprintf(`{"status":"ok","session_id":%q}`, id); err == nil && (a.status != 200 || strings.TrimSpace(a.body) != want) {
		err = fmt.Errorf("finish %s: status %d: %s, want %s", id, a.status, a.body, want)
	}
	return err
}

// eventually polls until the condition holds, or ends the test with what it says is missing.
func eventually(t *testing.T, what string, missing func() string) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for {
		m := missing()
		if m == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, m)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
