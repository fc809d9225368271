package gateway

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// guest compiles testdata/guest, once for all tests.
var guest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build ./testdata/guest: %w\n%s", err, text)
	}
	return os.ReadFile(out)
})

// setup is a gateway on a real listener, with the guest in it.
type setup struct {
	t       testing.TB
	host    *hostsim.Host
	gateway *Gateway
	url     string
	// ended gets the guest's log line for each stream's end.
	ended chan hostsim.LogEntry
	stop  context.CancelFunc
	done  chan error
}

func newHost(t testing.TB, c hostsim.Config) *hostsim.Host {
	t.Helper()
	wasm, err := guest()
	if err != nil {
		t.Fatal(err)
	}
	c.Wasm, c.Clock = wasm, hostsim.NewRealClock()
	h, err := hostsim.New(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// start serves clusters through the guest on workers workers.
func start(t testing.TB, hc hostsim.Config, c Config) *setup {
	t.Helper()
	s := &setup{t: t, ended: make(chan hostsim.LogEntry, 1000), done: make(chan error, 1)}
	hc.Log = func(e hostsim.LogEntry) {
		if strings.HasPrefix(e.Message, "upstream=") {
			s.ended <- e
		}
	}
	s.host = newHost(t, hc)
	c.Host = s.host
	s.serve(c)
	return s
}

func (s *setup) serve(c Config) {
	s.t.Helper()
	c.ErrorLog = log.New(io.Discard, "", 0)
	g, err := New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.gateway = g
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.url = "http://" + ln.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.done <- g.Serve(ctx, ln); close(s.done) }()
	s.t.Cleanup(func() { stop(); <-s.done })
}

// end waits for the next stream's end and returns the guest's line about it.
func (s *setup) end() string { return (<-s.ended).Message }

// forgetEnds takes the lines about ends away as they come.
func (s *setup) forgetEnds() {
	quit := make(chan struct{})
	go func() {
		for {
			select {
			case <-s.ended:
			case <-quit:
				return
			}
		}
	}()
	s.t.Cleanup(func() { close(quit) })
}

// wantCounts checks what the guest has counted.
func (s *setup) wantCounts(want map[string]uint64) {
	s.t.Helper()
	for name, n := range want {
		if m, _ := s.host.Metric(name); m.Value != n {
			s.t.Errorf("%s: %d, want %d", name, m.Value, n)
		}
	}
}

// backend is an upstream host that says who it is.
func backend(t testing.TB, name string, handle http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-backend", name)
		if handle != nil {
			handle(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// http2Backend is an upstream host that speaks HTTP/2 without TLS.
func http2Backend(t testing.TB, handle http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(handle)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// echo answers with the request's body, once it has all of it.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Write(body)
}

// closedPort is an address at which nobody listens.
func closedPort(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// client speaks HTTP/1.1, or HTTP/2 with prior knowledge.
func client(t testing.TB, http2 bool) *http.Client {
	tr := &http.Transport{DisableCompression: true}
	if http2 {
		tr.Protocols = new(http.Protocols)
		tr.Protocols.SetUnencryptedHTTP2(true)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func bothProtocols(t *testing.T, f func(t *testing.T, c *http.Client)) {
	t.Run("HTTP/1.1", func(t *testing.T) { f(t, client(t, false)) })
	t.Run("HTTP/2", func(t *testing.T) { f(t, client(t, true)) })
}

func request(t testing.TB, method, url, body string, headers ...string) *http.Request {
	t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, url, from)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// do sends a request and reads the whole answer.
func do(t testing.TB, c *http.Client, r *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("body: %v", err)
	}
	return resp, string(text)
}
