package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// rawUpstream answers each connection, once its request's headers have come, with text as it is, and closes it.
func rawUpstream(t *testing.T, text string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.WriteString(conn, text)
			}
			conn.Close()
		}
	}()
	return ln.Addr().String()
}

// What an upstream sends that is no answer becomes 503, what is one passes, and each stream ends once.
func TestUpstreamsOnTheWire(t *testing.T) {
	tests := []struct {
		name, text string
		status     int
		body       string
	}{
		{"nothing", "", 503, "upstream reset before response started\n"},
		{"garbage", "\x00\x01\x02 garbage\r\n\r\n", 503, "upstream reset before response started\n"},
		{"half a status line", "HTTP/1.1 2", 503, "upstream reset before response started\n"},
		{"headers cut off", "HTTP/1.1 200 OK\r\nx-a: b\r\n", 503, "upstream reset before response started\n"},
		{"100 and 103 first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", 200, "hi"},
		{"an upgrade that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nbytes", 503, "upstream reset before response started\n"},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
		{"304 with a length", "HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n", 304, ""},
		{"until it closes", "HTTP/1.0 200 OK\r\n\r\nall of it", 200, "all of it"},
		{"two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nhi", 503, "upstream reset before response started\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, hostsim.Config{}, Config{Attempts: 1, Clusters: []Cluster{{Name: "llm", Hosts: []string{rawUpstream(t, tt.text)}}}})
			resp, body := do(t, client(t, false), request(t, "GET", s.url, ""))
			if resp.StatusCode != tt.status || body != tt.body {
				t.Errorf("%d %q, want %d %q", resp.StatusCode, body, tt.status, tt.body)
			}
			s.stop()
			<-s.done
			s.wantCounts(map[string]uint64{"log": 1, "done": 1, "delete": 1})
		})
	}
}

// Requests that come before the answer to the first are answered in turn; HEAD keeps the length of what it leaves out.
func TestPipelining(t *testing.T) {
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-length", fmt.Sprint(len(r.URL.Path)))
		_, _ = io.WriteString(w, r.URL.Path)
	})}}}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /1 HTTP/1.1\r\nhost: a\r\n\r\nPOST /22 HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nbodyHEAD /333 HTTP/1.1\r\nhost: a\r\n\r\nGET /4444 HTTP/1.1\r\nhost: a\r\n\r\n")
	in := bufio.NewReader(conn)
	for i, method := range []string{"GET", "POST", "HEAD", "GET"} {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("answer %d: %v", i+1, err)
		}
		body, _ := io.ReadAll(resp.Body)
		want := "/" + strings.Repeat(fmt.Sprint(i+1), i+1)
		if resp.ContentLength != int64(len(want)) || method != "HEAD" && string(body) != want {
			t.Errorf("answer %d: %d %q, length %d", i+1, resp.StatusCode, body, resp.ContentLength)
		}
	}
	s.stop()
	<-s.done
	s.wantCounts(map[string]uint64{"log": 4, "done": 4, "delete": 4})
}
