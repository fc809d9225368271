package envoytest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Header names between tests and replicas.
const (
	// DoHeader tells a replica how to answer; see Replica.
	DoHeader = "x-replica-do"
	// ServedByHeader names the replica in its answer.
	ServedByHeader = "x-served-by"
)

// Request is what a replica saw of one request.
type Request struct {
	// Session is the first X-Session-ID, empty when there is none.
	Session string
	// Method, Path (with query) and Host are as received.
	Method, Path, Host string
	// Header is the whole header.
	Header http.Header
	// Body is the number of body bytes.
	Body int64
}

// Replica is a stand-in model server on a loopback port that records its
// requests. A request's DoHeader, written like a URL query, directs the answer:
//
//	delay=200ms   wait before the status line
//	chunks=50     answer as server-sent events, flushed one by one
//	every=5ms     pause between chunks
//	reset=3       reset the connection after 3 chunks; 0 means before the status line
//	redirect=/p   answer 302 to the path /p; there, answer as without it
//	hold=1        after the chunks, stay until the peer goes away or Release is called
//
// Without it the answer is 200 with a short JSON text. Methods may be called by
// several goroutines.
type Replica struct {
	// Addr is host:port; it stays the same over Close and Reopen.
	Addr string

	mu       sync.Mutex
	server   *http.Server // nil while closed
	requests []Request
	release  chan struct{} // closed by Release, then replaced
}

// OpenReplica listens on addr; of a port of 0 it makes one as FreePort gives.
func OpenReplica(addr string) (*Replica, error) {
	r := &Replica{Addr: addr, release: make(chan struct{})}
	if err := r.Reopen(); err != nil {
		return nil, err
	}
	return r, nil
}

// Close stops listening and cuts all connections: new ones are refused.
func (r *Replica) Close() {
	r.mu.Lock()
	server := r.server
	r.server = nil
	r.mu.Unlock()
	if server != nil {
		server.Close()
	}
}

// Reopen listens again after Close.
func (r *Replica) Reopen() error {
	l, err := listen(r.Addr)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Addr = l.Addr().String()
	r.server = &http.Server{Handler: r}
	go r.server.Serve(l)
	return nil
}

// listen retries for a second: a connection on its way out may have borrowed the
// port of a closed replica that was given a number.
func listen(addr string) (net.Listener, error) {
	if host, port, err := net.SplitHostPort(addr); err == nil && port == "0" {
		return listenFree(host)
	}
	deadline := time.Now().Add(time.Second)
	for {
		l, err := net.Listen("tcp", addr)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return l, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Release lets all held answers finish.
func (r *Replica) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.release)
	r.release = make(chan struct{})
}

// Requests returns a copy of the record.
func (r *Replica) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Request(nil), r.requests...)
}

// Forget empties the record.
func (r *Replica) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// ServeHTTP answers as DoHeader asks.
func (r *Replica) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n, _ := io.Copy(io.Discard, req.Body)
	released := r.record(req, n)
	do, err := url.ParseQuery(req.Header.Get(DoHeader))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set(ServedByHeader, r.Addr)
	if !pause(req, do.Get("delay")) {
		return
	}
	if to := do.Get("redirect"); to != "" && req.URL.Path != to {
		http.Redirect(w, req, "http://"+req.Host+to, http.StatusFound)
		return
	}
	reset := -1
	if do.Has("reset") {
		reset = number(do, "reset")
	}
	if reset == 0 {
		resetConnection(w)
		return
	}
	if !do.Has("chunks") {
		w.Header().Set("content-type", "application/json")
		fmt.Fprintf(w, "{\"replica\":%q}\n", r.Addr)
		return
	}
	w.Header().Set("content-type", "text/event-stream")
	for i := range number(do, "chunks") {
		if i == reset {
			resetConnection(w)
			return
		}
		fmt.Fprintf(w, "data: %d\n\n", i)
		w.(http.Flusher).Flush()
		if !pause(req, do.Get("every")) {
			return
		}
	}
	if do.Has("hold") {
		select {
		case <-released:
		case <-req.Context().Done():
		}
	}
}

func (r *Replica) record(req *http.Request, body int64) (released <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, Request{
		Session: req.Header.Get("X-Session-ID"),
		Method:  req.Method, Path: req.RequestURI, Host: req.Host,
		Header: req.Header.Clone(), Body: body,
	})
	return r.release
}

// pause waits for a duration such as "5ms"; it reports false when the peer has
// gone meanwhile. Empty means no wait.
func pause(req *http.Request, text string) bool {
	if text == "" {
		return true
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-req.Context().Done():
		return false
	}
}

func number(do url.Values, key string) int {
	n, _ := strconv.Atoi(do.Get(key))
	return n
}

// resetConnection sends a TCP reset instead of an orderly end.
func resetConnection(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
