package gateway

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// hostile are clients as bytes on a connection: what they send, and whether they read.
var hostile = []struct {
	name, send string
	read       bool
}{
	{"says nothing", "", true},
	{"headers by drops", "GET / HTTP/1.1\r\nHost: x\r\n", true},
	{"a body that stops", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1", true},
	{"chunks that stop", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", true},
	{"no chunk", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", true},
	{"takes nothing", "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n", false},
	{"takes nothing, HTTP/2", preface + "\x00\x00\x0d\x01\x05\x00\x00\x00\x01\x82\x86\x44\x08/endless\x41\x01x", false},
	{"half-closed", "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n", true},
	{"two at once", "GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n", true},
	{"a body that stops, HTTP/2", preface + "\x00\x00\x06\x01\x04\x00\x00\x00\x01\x83\x86\x84\x41\x01x", true},
	{"half a frame", preface + "\x00\x00\x06\x01\x04\x00\x00", true},
	{"headers without end", preface + "\x00\x00\x06\x01\x00\x00\x00\x00\x01\x83\x86\x84\x41\x01x", true},
	{"reset at once", preface + resets(100), true},
	{"no HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", true},
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// resets is n streams, up to 128, that are begun and reset.
func resets(n byte) (text string) {
	for i := range n {
		id := string([]byte{2*i + 1})
		text += "\x00\x00\x06\x01\x05\x00\x00\x00" + id + "\x82\x86\x84\x41\x01x" + "\x00\x00\x04\x03\x00\x00\x00\x00" + id + "\x00\x00\x00\x08"
	}
	return text
}

// Clients that stall, leave and send what is no HTTP leave nothing behind: no goroutine, no place among the requests, no
// running request of a host, no stream of the plugin.
func TestHostileClientsLeaveNothing(t *testing.T) {
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for block := make([]byte, 64<<10); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		case "/slow":
			<-r.Context().Done()
		default:
			echo(w, r)
		}
	})
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}, IdleTimeout: 50 * time.Millisecond,
		ReadHeaderTimeout: 50 * time.Millisecond, MaxRequests: 1000, MaxBodyBytes: 1 << 20})
	s.forgetEnds()
	do(t, client(t, false), request(t, "POST", s.url+"/echo", "x"))
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // bounds a failure
	defer cancel()
	var all sync.WaitGroup
	for n := range 20 * len(hostile) {
		all.Go(func() {
			h := hostile[n%len(hostile)]
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, h.send); err != nil {
				return // it may have been cut by now
			}
			switch {
			case h.name == "half-closed" || h.name == "two at once":
				_ = conn.(*net.TCPConn).CloseWrite()
			case rand.IntN(4) == 0:
				return // leaves
			}
			end, _ := ctx.Deadline()
			_ = conn.SetDeadline(end)
			if !h.read {
				_ = conn.(*net.TCPConn).SetReadBuffer(4096)
				for ; err == nil; time.Sleep(10 * time.Millisecond) { // until it is cut, without reading
					_, err = conn.Write([]byte("\x00\x00\x08\x06\x00\x00\x00\x00\x00pingpong"))
				}
				return
			}
			if _, err := io.Copy(io.Discard, conn); err != nil && ctx.Err() != nil {
				t.Errorf("%s: not cut", h.name)
			}
		})
	}
	all.Wait()
	host := s.gateway.Upstreams()[0]
	for deadline := time.Now().Add(time.Minute); host.Running != 0 || s.gateway.admitted.Load() != 0 || runtime.NumGoroutine() > before+5; host = s.gateway.Upstreams()[0] {
		if time.Now().After(deadline) {
			text := make([]byte, 1<<20)
			t.Fatalf("%d running, %d admitted, %d goroutines after %d:\n%s", host.Running, s.gateway.admitted.Load(), runtime.NumGoroutine(), before,
				text[:runtime.Stack(text, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
	if resp, text := do(t, client(t, false), request(t, "POST", s.url+"/echo", "after")); resp.StatusCode != 200 || text != "after" {
		t.Errorf("afterwards: %d %q", resp.StatusCode, text)
	}
}
