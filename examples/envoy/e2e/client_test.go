package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// reply is an answer as the client saw it.
type reply struct {
	Status int
	Served string // who really answered; empty for local replies
	Chosen string // x-pinwheel-replica
	Reason string // x-pinwheel-reason
	Body   string
	Header http.Header
}

// client sends requests to one gateway over kept-alive connections.
type client struct {
	base string
	http *http.Client
}

func newClient(addr string) *client {
	return &client{
		base: "http://" + addr,
		http: &http.Client{
			Timeout:   5 * time.Minute, // of the body too: a stream lives through updates, each of which compiles the wasm
			Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true},
		},
	}
}

// send performs one request; header pairs come as name, value, name, value.
func (c *client) send(ctx context.Context, method, path string, body io.Reader, header ...string) (reply, error) {
	res, err := c.open(ctx, method, path, body, header...)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	return read(res)
}

// open is send without reading the body, for streams.
func (c *client) open(ctx context.Context, method, path string, body io.Reader, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return c.http.Do(req)
}

func read(res *http.Response) (reply, error) {
	body, err := io.ReadAll(res.Body)
	return reply{
		Status: res.StatusCode,
		Served: res.Header.Get(envoytest.ServedByHeader),
		Chosen: res.Header.Get("x-pinwheel-replica"),
		Reason: res.Header.Get("x-pinwheel-reason"),
		Body:   string(body),
		Header: res.Header,
	}, err
}

const chatPath = "/v1/chat/completions"

var serial atomic.Uint64

// newID returns a session id that no test has used.
func newID() string { return fmt.Sprintf("session-%d", serial.Add(1)) }

func newIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = newID()
	}
	return ids
}

// opened notes a session so that settle releases it.
func (g *gateway) opened(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sessions[id] = true
}

// turn sends one turn of a session (none if id is empty) and expects 200 from
// the replica that the plugin names, for the given reason.
func (g *gateway) turn(t *testing.T, id, reason string, header ...string) reply {
	t.Helper()
	if id != "" {
		g.opened(id)
		header = append(header, "X-Session-ID", id)
	}
	r, err := g.client.send(t.Context(), http.MethodPost, chatPath, strings.NewReader(`{"messages":[]}`), header...)
	if err != nil {
		g.complain(t, "turn of %q: %v", id, err)
		return r
	}
	g.expect(t, r, reason)
	return r
}

// complain is t.Errorf for checks that run hundreds of times: it prints the first
// ten faults of a test.
func (g *gateway) complain(t *testing.T, format string, args ...any) {
	t.Helper()
	if g.complaints.Add(1) > 10 {
		t.Fail()
		return
	}
	t.Errorf(format, args...)
}

// expect checks a routed answer.
func (g *gateway) expect(t *testing.T, r reply, reason string) {
	t.Helper()
	if r.Status != 200 || r.Reason != reason {
		g.complain(t, "status %d, reason %q; want 200, %q (body %.100q)", r.Status, r.Reason, reason, r.Body)
	}
	if v := r.Header.Values(targetHeader); v != nil {
		g.complain(t, "the client was told %s: %q", targetHeader, v)
	}
	if r.Served == "" || r.Chosen != r.Served {
		g.complain(t, "x-pinwheel-replica %q, but %q served", r.Chosen, r.Served)
	}
}

// turns sends one turn of every session at once and returns who served each.
func (g *gateway) turns(t *testing.T, ids []string, reason string) map[string]string {
	t.Helper()
	var mu sync.Mutex
	served := make(map[string]string, len(ids))
	together(len(ids), func(i int) {
		r := g.turn(t, ids[i], reason)
		mu.Lock()
		defer mu.Unlock()
		served[ids[i]] = r.Served
	})
	return served
}

// together runs f(0) to f(n-1) on n goroutines that start at the same moment.
func together(n int, f func(i int)) {
	gate := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-gate
			f(i)
		})
	}
	close(gate)
	all.Wait()
}

// spread counts, per replica, how often it occurs as a value, in the order of
// g.replicas.
func (g *gateway) spread(served map[string]string) []int {
	out := make([]int, len(g.replicas))
	for _, addr := range served {
		for i, r := range g.replicas {
			if r.Addr == addr {
				out[i]++
			}
		}
	}
	return out
}

// finish sends one release and returns the answer.
func (g *gateway) finish(t *testing.T, method, query string, body io.Reader, header ...string) reply {
	t.Helper()
	r, err := g.client.send(t.Context(), method, "/finish_session"+query, body, header...)
	if err != nil {
		t.Errorf("%s /finish_session%.80s: %v", method, query, err)
	}
	return r
}

// release finishes sessions in comma lists; ids with a comma go alone.
func (g *gateway) release(t *testing.T, ids ...string) {
	t.Helper()
	for len(ids) > 0 {
		n := min(len(ids), 100)
		list := make([]string, n)
		for i, id := range ids[:n] {
			list[i] = url.QueryEscape(id)
		}
		ids = ids[n:]
		if r := g.finish(t, http.MethodPost, "?session_id="+strings.Join(list, ","), nil); r.Status != 200 {
			t.Errorf("release of %d sessions: %d %s", n, r.Status, r.Body)
		}
	}
}

// acknowledged checks the body of an accepted release.
func acknowledged(t *testing.T, r reply, id string) {
	t.Helper()
	var got struct {
		Status    string
		SessionID string `json:"session_id"`
	}
	if err := json.Unmarshal([]byte(r.Body), &got); err != nil || r.Status != 200 || got.Status != "ok" || got.SessionID != id {
		t.Errorf("release answered %d %q, want 200 ok for %q (%v)", r.Status, r.Body, id, err)
	}
	if ct := r.Header.Get("content-type"); !strings.HasPrefix(ct, "application/json") {
		t.Errorf("release answered content-type %q", ct)
	}
}

// raw is one TCP connection, and with it one worker of Envoy, over which bytes
// go out exactly as written.
type raw struct {
	conn net.Conn
	in   *bufio.Reader
}

func (g *gateway) dial(t *testing.T) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return &raw{conn, bufio.NewReader(conn)}
}

// send writes a request and reads its answer.
func (c *raw) send(t *testing.T, request string) reply {
	t.Helper()
	if _, err := io.WriteString(c.conn, request); err != nil {
		t.Fatalf("raw write: %v", err)
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatalf("raw read: %v (after %.80q)", err, request)
	}
	defer res.Body.Close()
	r, err := read(res)
	if err != nil {
		t.Fatalf("raw read: %v", err)
	}
	return r
}

// get sends a GET with these header lines, each without its line end.
func (c *raw) get(t *testing.T, lines ...string) reply {
	t.Helper()
	return c.send(t, "GET /v1/models HTTP/1.1\r\nHost: llm\r\n"+strings.Join(append(lines, "\r\n"), "\r\n"))
}
