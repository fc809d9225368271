package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// Fifty events, each read by the client before the upstream may send the next.
func TestEventsAreFlushedOneByOne(t *testing.T) {
	step := make(chan struct{})
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/event-stream")
		w.(http.Flusher).Flush()
		for i := range 50 {
			<-step
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	})
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
		resp, err := cl.Do(request(t, "POST", s.url, "{}")) // returns before the first event
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for i := range 50 {
			step <- struct{}{}
			if !lines.Scan() || lines.Text() != fmt.Sprintf("data: %d", i) || !lines.Scan() {
				t.Fatalf("event %d: %q, error %v", i, lines.Text(), lines.Err())
			}
		}
		if lines.Scan() {
			t.Errorf("more text at the end: %q", lines.Text())
		}
		s.end()
		s.wantCounts(map[string]uint64{"response_body": 50})
	})
}

// The plugin's own answers never reach an upstream, whatever the client still has to send, and keep the connection usable.
func TestLocalReply(t *testing.T) {
	a := backend(t, "a", func(http.ResponseWriter, *http.Request) { t.Error("a local reply's request was forwarded") })
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		for _, size := range []int{0, 10, 300_000} {
			for range 3 {
				r := request(t, "POST", s.url, strings.Repeat("x", size), "x-do", "reply")
				resp, text := do(t, cl, r)
				if resp.StatusCode != 418 || text != "from the plugin\n" {
					t.Errorf("%d bytes sent: %d %q", size, resp.StatusCode, text)
				}
				if got := s.end(); !strings.Contains(got, "upstream= ") {
					t.Errorf("%d bytes sent: the plugin read %q", size, got)
				}
			}
		}
	})
}

func TestRequestBodies(t *testing.T) {
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-length", fmt.Sprint(r.ContentLength))
		echo(w, r)
	})
	s := start(t, hostsim.Config{AllowOnHeadersStopIteration: true}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		for _, do1 := range []string{"", "collect", "wait"} {
			for _, size := range []int{0, 1, 100_000, 3 << 20} {
				body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
				for _, known := range []bool{true, false} {
					r := request(t, "POST", s.url, body, "x-do", do1)
					if !known && size > 0 {
						r.ContentLength = -1
					}
					resp, text := do(t, cl, r)
					switch {
					case do1 == "collect" && size > hostsim.DefaultBufferLimit:
						if resp.StatusCode != 413 {
							t.Errorf("%s %d bytes: %d, want 413", do1, size, resp.StatusCode)
						}
					case resp.StatusCode != 200 || text != body:
						t.Errorf("%s %d bytes: %d with %d bytes", do1, size, resp.StatusCode, len(text))
					case known && resp.Header.Get("x-length") != fmt.Sprint(size):
						t.Errorf("%s %d bytes: announced %s upstream", do1, size, resp.Header.Get("x-length"))
					}
				}
			}
		}
	})
}

// A response may begin, and reach the client, before the request is complete.
func TestBothWaysAtOnce(t *testing.T) {
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		w.(http.Flusher).Flush()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			fmt.Fprint(w, strings.ToUpper(line))
			w.(http.Flusher).Flush()
		}
	})
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	pipe, w := io.Pipe()
	r := request(t, "POST", s.url, "")
	r.Body, r.ContentLength = pipe, -1
	resp, err := client(t, true).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for i := range 5 {
		fmt.Fprintf(w, "line %d\n", i)
		if line, err := in.ReadString('\n'); line != fmt.Sprintf("LINE %d\n", i) {
			t.Fatalf("%q, error %v", line, err)
		}
	}
	w.Close()
	if _, err := in.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestStatusesWithoutBody(t *testing.T) {
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.WriteHeader(304)
		default:
			fmt.Fprint(w, "hello")
		}
	})
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		for path, code := range map[string]int{"/204": 204, "/304": 304} {
			if resp, text := do(t, cl, request(t, "GET", s.url+path, "")); resp.StatusCode != code || text != "" {
				t.Errorf("%s: %d %q", path, resp.StatusCode, text)
			}
		}
		resp, text := do(t, cl, request(t, "HEAD", s.url, ""))
		if resp.StatusCode != 200 || text != "" || resp.ContentLength != 5 {
			t.Errorf("HEAD: %d %q, length %d", resp.StatusCode, text, resp.ContentLength)
		}
	})
}

func TestHeadersBeyondTheLimit(t *testing.T) {
	a := backend(t, "a", nil)
	s := start(t, hostsim.Config{}, Config{MaxHeaderBytes: 10_000, Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	for size, want := range map[int]int{8192: 200, 20_000: 431} {
		r := request(t, "GET", s.url, "", "x-session-id", strings.Repeat("x", size))
		if resp, _ := do(t, client(t, false), r); resp.StatusCode != want {
			t.Errorf("%d bytes of header: %d, want %d", size, resp.StatusCode, want)
		}
	}
}
