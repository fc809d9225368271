package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// One request at a time: the next one is told so at once, and has its turn when the first has ended.
func TestMaxRequests(t *testing.T) {
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		arrived, release := make(chan struct{}, 3), make(chan struct{})
		a := backend(t, "a", func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-release })
		ends := make(chan Access, 10)
		s := &setup{t: t, done: make(chan error, 1)}
		s.serve(Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}, MaxRequests: 1, OnEnd: func(x *Access) { ends <- *x }})
		first := make(chan int)
		go func() {
			resp, err := cl.Do(request(t, "GET", s.url, ""))
			if err != nil {
				first <- 0
				return
			}
			resp.Body.Close()
			first <- resp.StatusCode
		}()
		<-arrived
		for range 2 { // who is refused takes nobody's place
			resp, text := do(t, cl, request(t, "POST", s.url, "body"))
			if resp.StatusCode != 503 || text != "overload\n" || resp.Header.Get("retry-after") != "1" {
				t.Errorf("%d %q %v", resp.StatusCode, text, resp.Header)
			}
			if x := <-ends; x.Status != 503 || x.Detail != "overload" || x.Upstream != "" || x.Attempts != 0 {
				t.Errorf("%+v", x)
			}
		}
		close(release)
		if got := <-first; got != 200 {
			t.Errorf("the first one: %d", got)
		}
		<-ends
		if resp, _ := do(t, cl, request(t, "GET", s.url, "")); resp.StatusCode != 200 {
			t.Errorf("after it: %d", resp.StatusCode)
		}
	})
}

// A body over the limit is answered 413, whether its length was told or not; one of just that length passes.
func TestMaxBodyBytes(t *testing.T) {
	a := backend(t, "a", echo)
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}, MaxBodyBytes: 1 << 20})
	s.forgetEnds()
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		for _, told := range []bool{true, false} {
			for _, extra := range []int{0, 1} {
				r := request(t, "POST", s.url, strings.Repeat("x", 1<<20+extra))
				if !told {
					r.ContentLength, r.Body = -1, io.NopCloser(r.Body)
				}
				resp, text := do(t, cl, r)
				if want := []int{200, 413}[extra]; resp.StatusCode != want || extra == 1 && text != "request payload too large\n" {
					t.Errorf("length told %v, %d over: %d %.40q", told, extra, resp.StatusCode, text)
				}
			}
		}
	})
}

// With room for one connection, a second one waits until the first closes.
func TestMaxConnections(t *testing.T) {
	var served atomic.Int64
	a := backend(t, "a", func(http.ResponseWriter, *http.Request) { served.Add(1) })
	s := &setup{t: t, done: make(chan error, 1)}
	s.serve(Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}, MaxConnections: 1})
	one, two := client(t, false), client(t, false)
	do(t, one, request(t, "GET", s.url, ""))
	second := make(chan error, 1)
	go func() {
		resp, err := two.Do(request(t, "GET", s.url, ""))
		if err == nil {
			resp.Body.Close()
		}
		second <- err
	}()
	for range 20 {
		do(t, one, request(t, "GET", s.url, ""))
	}
	if got := served.Load(); got != 21 {
		t.Errorf("%d requests served, want the 21 of the first connection", got)
	}
	one.CloseIdleConnections()
	if err := <-second; err != nil {
		t.Error(err)
	}
}

// An upload that stands still is answered 408, and the plugin hears why; an answer that takes longer than that is not cut.
func TestIdleUpload(t *testing.T) {
	release := make(chan struct{})
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
		io.Copy(io.Discard, r.Body)
	})
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}, IdleTimeout: 100 * time.Millisecond})
	slow := make(chan int, 1)
	go func() {
		resp, err := client(t, false).Do(request(t, "POST", s.url+"/slow", "whole"))
		if err != nil {
			slow <- 0
			return
		}
		resp.Body.Close()
		slow <- resp.StatusCode
	}()
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		pipe, w := io.Pipe()
		go w.Write([]byte("first chunk"))
		r := request(t, "POST", s.url, "")
		r.Body, r.ContentLength = pipe, -1
		resp, text := do(t, cl, r)
		w.CloseWithError(io.ErrUnexpectedEOF)
		if resp.StatusCode != 408 || text != "stream idle timeout\n" {
			t.Errorf("%d %q", resp.StatusCode, text)
		}
		if got := s.end(); !strings.Contains(got, "details=stream_idle_timeout") {
			t.Errorf("the plugin read %q", got)
		}
	})
	close(release)
	if got := <-slow; got != 200 {
		t.Errorf("a slow answer: %d, want 200", got)
	}
}

// A connection without requests is closed.
func TestIdleConnection(t *testing.T) {
	a := backend(t, "a", nil)
	s := &setup{t: t, done: make(chan error, 1)}
	s.serve(Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}, IdleTimeout: 50 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v, %v", resp, err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil { // until it is closed
		t.Errorf("the connection broke: %v", err)
	}
}

// A client that takes nothing of its answer is cut, over HTTP/2 one stream of it.
func TestIdleDownload(t *testing.T) {
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		for block := make([]byte, 1<<20); r.URL.Path == "/endless"; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		ends := make(chan Access, 10)
		s := &setup{t: t, done: make(chan error, 1)}
		s.serve(Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}, IdleTimeout: 100 * time.Millisecond, OnEnd: func(x *Access) { ends <- *x }})
		resp, err := cl.Do(request(t, "GET", s.url+"/endless", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if x := <-ends; x.End != hostsim.EndClientGone || x.Status != 200 || x.ResponseBytes == 0 {
			t.Errorf("%+v", x)
		}
		if resp, _ := do(t, cl, request(t, "GET", s.url, "")); resp.StatusCode != 200 {
			t.Errorf("the next request: %d", resp.StatusCode)
		}
	})
}

// So is one stream whose client never takes what an answer ends with, though the handler has long returned: an answer that
// fits into net/http's buffer is sent after it.
func TestIdleEndOfAnswer(t *testing.T) {
	a := backend(t, "a", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "short") })
	s := &setup{t: t, done: make(chan error, 1)}
	s.serve(Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}, IdleTimeout: 100 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute)) // bounds a failure
	fmt.Fprint(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+
		"\x00\x00\x06\x04\x00\x00\x00\x00\x00"+"\x00\x04\x00\x00\x00\x00"+ // SETTINGS: no room on any stream
		"\x00\x00\x06\x01\x05\x00\x00\x00\x01"+"\x82\x86\x84\x41\x01x") // HEADERS: GET http / x, and its end
	var got []byte // types of the frames of that stream
	for header := make([]byte, 9); !bytes.HasSuffix(got, []byte{3}); {
		if _, err := io.ReadFull(conn, header); err != nil {
			t.Fatalf("%v after frames %v, want a reset", err, got)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(header[0])<<16|int64(header[1])<<8|int64(header[2])); err != nil {
			t.Fatal(err)
		}
		if header[8] == 1 {
			got = append(got, header[3])
		}
	}
	if !bytes.Equal(got, []byte{1, 3}) {
		t.Errorf("frames %v, want headers and a reset", got)
	}
}

// Headers over the limit, and what is no HTTP, are refused before the plugin hears of them.
func TestMaxHeaderBytes(t *testing.T) {
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{backend(t, "a", nil)}}}, MaxHeaderBytes: 2048,
		OnEnd: func(x *Access) {
			if x.Status != 200 {
				t.Errorf("%+v", x)
			}
		}})
	for text, want := range map[string]int{
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-fits: " + strings.Repeat("x", 1800) + "\r\n\r\n":      200,
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-long: " + strings.Repeat("x", 2048+4096) + "\r\n\r\n": 431,
		"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n":                                                            400,
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, text)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%.80q: %v, %v, want %d", text, resp, err, want)
		}
	}
}
