package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// The header that the plugin writes picks the host, for as long as it says so; the host does not see it.
func TestTargetHeaderIsObeyed(t *testing.T) {
	leaked := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-leak", r.Header.Get(DefaultTargetHeader))
		w.Header().Set("x-seen", r.Method+" "+r.RequestURI+" "+r.Header.Get("x-keep"))
	}
	a, b, c := backend(t, "a", leaked), backend(t, "b", leaked), backend(t, "c", leaked)
	s := start(t, hostsim.Config{Workers: 2}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a, b, c}}}})
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		for pick, want := range map[string]string{b: "b", c: "c", "10.9.9.9:1," + a: "a", " " + b + " , ": "b"} {
			for range 5 {
				resp, _ := do(t, cl, request(t, "GET", s.url+"/x%2Fy?q=1", "", "x-pick", pick, "x-keep", "\xff"))
				if got := resp.Header.Get("x-backend"); got != want {
					t.Errorf("pick %q: served by %q, want %q", pick, got, want)
				}
				if got := resp.Header.Get("x-leak"); got != "" {
					t.Errorf("the upstream saw the target header: %q", got)
				}
				if got := resp.Header.Get("x-seen"); got != "GET /x%2Fy?q=1 \xff" {
					t.Errorf("the upstream saw %q", got)
				}
				if got := resp.Header.Get("x-upstream"); !strings.Contains(pick, got) || got == "" {
					t.Errorf("the plugin read upstream.address %q", got)
				}
			}
		}
	})
}

func TestUnknownTargetsGoRoundRobin(t *testing.T) {
	a, b := backend(t, "a", nil), backend(t, "b", nil)
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a, b}}}})
	count := map[string]int{}
	for range 10 {
		resp, _ := do(t, client(t, false), request(t, "GET", s.url, "", "x-pick", "10.9.9.9:80"))
		count[resp.Header.Get("x-backend")]++
	}
	if count["a"] != 5 || count["b"] != 5 {
		t.Errorf("%v, want 5 and 5", count)
	}
}

// A host that takes no connection costs the request nothing but the next attempt; its body arrives whole.
func TestConnectFailureGoesToTheNextEntry(t *testing.T) {
	dead1, dead2 := closedPort(t), closedPort(t)
	b, c := backend(t, "b", echo), backend(t, "c", echo)
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{dead1, dead2, b, c}}}})
	body := strings.Repeat("0123456789", 20_000)
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		for pick, want := range map[string]string{dead1 + "," + c: "c", dead1 + "," + dead2 + "," + b: "b"} {
			resp, text := do(t, cl, request(t, "POST", s.url, body, "x-pick", pick))
			if got := resp.Header.Get("x-backend"); resp.StatusCode != 200 || got != want || text != body {
				t.Errorf("pick %s: %d from %q with %d bytes, want %q", pick, resp.StatusCode, got, len(text), want)
			}
			if got := resp.Header.Get("x-upstream"); !strings.HasSuffix(pick, got) {
				t.Errorf("pick %s: the plugin read upstream.address %q", pick, got)
			}
		}
	})
}

func TestNobodyToConnectTo(t *testing.T) {
	dead := closedPort(t)
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "dead", Hosts: []string{dead}}, {Name: "none"}}})
	for host, want := range map[string]string{
		"dead": "upstream=" + dead + " cluster=dead details=upstream_connection_failure",
		"none": "upstream= cluster=none details=no_healthy_upstream",
	} {
		r := request(t, "POST", s.url, "body")
		r.Host = host
		if resp, text := do(t, client(t, false), r); resp.StatusCode != 503 || text == "" {
			t.Errorf("%s: %d %q, want 503 with a reason", host, resp.StatusCode, text)
		}
		if got := s.end(); got != want {
			t.Errorf("%s: the plugin read %q, want %q", host, got, want)
		}
	}
	s.wantCounts(map[string]uint64{"log": 2, "done": 2, "delete": 2})
}

// A request's authority picks the cluster by name, with or without port; any other goes to the first.
func TestClusterByAuthority(t *testing.T) {
	a, b := backend(t, "a", nil), backend(t, "b", nil)
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "one", Hosts: []string{a}}, {Name: "two", Hosts: []string{b}}}})
	for host, want := range map[string]string{"one": "a", "two": "b", "two:8080": "b", "three": "a", "": "a"} {
		r := request(t, "GET", s.url, "")
		r.Host = host
		resp, _ := do(t, client(t, false), r)
		if got := resp.Header.Get("x-backend"); got != want {
			t.Errorf("Host %q: served by %q, want %q", host, got, want)
		}
		cluster := map[string]string{"a": "one", "b": "two"}[want]
		if got := s.end(); !strings.Contains(got, "cluster="+cluster+" ") {
			t.Errorf("Host %q: the plugin read %q, want cluster %s", host, got, cluster)
		}
	}
}

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

// Wherever the client leaves, the plugin hears log, done and delete, once each, and the upstream's work is cancelled.
func TestClientLeaves(t *testing.T) {
	for _, phase := range []string{"before the response", "mid response", "mid request"} {
		t.Run(phase, func(t *testing.T) {
			bothProtocols(t, func(t *testing.T, cl *http.Client) {
				arrived, cancelled := make(chan struct{}), make(chan struct{})
				a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
					if phase == "mid response" {
						fmt.Fprint(w, "data: 1\n\n")
						w.(http.Flusher).Flush()
					}
					close(arrived)
					io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
					close(cancelled)
				})
				s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
				ctx, cancel := context.WithCancel(context.Background())
				leave := cancel
				r := request(t, "POST", s.url, "{}").WithContext(ctx)
				if phase == "mid request" {
					pipe, w := io.Pipe()
					// net/http's client waits for a body that it is still reading.
					leave = func() { cancel(); w.CloseWithError(context.Canceled) }
					r.Body, r.ContentLength = pipe, -1
					go w.Write([]byte("first chunk"))
				}
				done := make(chan struct{})
				go func() {
					defer close(done)
					if resp, err := cl.Do(r); err == nil {
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				}()
				<-arrived
				leave()
				<-done
				<-cancelled
				if got := s.end(); !strings.Contains(got, "details=downstream_remote_disconnect") || !strings.Contains(got, a) {
					t.Errorf("the plugin read %q", got)
				}
				s.stop()
				<-s.done
				s.wantCounts(map[string]uint64{"log": 1, "done": 1, "delete": 1})
				if got := s.host.Worker(0).OpenStreams(); got != 0 {
					t.Errorf("%d streams open", got)
				}
			})
		})
	}
}

// The upstream breaks off in the middle: so does the client's response, and the plugin knows why.
func TestUpstreamBreaksOff(t *testing.T) {
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mid" {
			fmt.Fprint(w, "half")
			w.(http.Flusher).Flush()
		}
		panic(http.ErrAbortHandler)
	})
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		resp, err := cl.Do(request(t, "GET", s.url+"/mid", ""))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil || string(text) != "half" {
			t.Errorf("%q, error %v, want half of it and an error", text, err)
		}
		if got := s.end(); !strings.Contains(got, "details=upstream_reset_after_response_started") {
			t.Errorf("the plugin read %q", got)
		}
		// A request that may have had an effect is not repeated.
		resp, _ = do(t, cl, request(t, "POST", s.url+"/before", "x"))
		if resp.StatusCode != 503 {
			t.Errorf("%d, want 503", resp.StatusCode)
		}
		if got := s.end(); !strings.Contains(got, "details=upstream_reset_before_response_started") {
			t.Errorf("the plugin read %q", got)
		}
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

// FAIL_RELOAD: the request in which the plugin dies is answered 503, later ones have a plugin again.
func TestCrashedPluginComesBack(t *testing.T) {
	a, b := backend(t, "a", nil), backend(t, "b", nil)
	s := start(t, hostsim.Config{FailurePolicy: hostsim.FailReload, ReloadBackoff: 1},
		Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a, b}}}})
	for range 3 {
		resp, _ := do(t, client(t, false), request(t, "GET", s.url, "", "x-do", "panic"))
		if resp.StatusCode != 503 || resp.Header.Get("x-backend") != "" {
			t.Errorf("%d from %q, want 503 from nobody", resp.StatusCode, resp.Header.Get("x-backend"))
		}
		resp, _ = do(t, client(t, false), request(t, "GET", s.url, "", "x-pick", b))
		if resp.StatusCode != 200 || resp.Header.Get("x-backend") != "b" {
			t.Errorf("after the crash: %d from %q", resp.StatusCode, resp.Header.Get("x-backend"))
		}
	}
}

// A connection stays on one worker, with HTTP/2 all of its streams too; connections take turns.
func TestConnectionsHaveWorkers(t *testing.T) {
	a := backend(t, "a", nil)
	s := start(t, hostsim.Config{Workers: 3}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	bothProtocols(t, func(t *testing.T, _ *http.Client) {
		seen := map[int]int{}
		for range 3 {
			cl := client(t, strings.HasSuffix(t.Name(), "2"))
			for range 4 {
				do(t, cl, request(t, "GET", s.url, ""))
				seen[(<-s.ended).Worker]++
			}
		}
		if want := map[int]int{0: 4, 1: 4, 2: 4}; !reflect.DeepEqual(seen, want) {
			t.Errorf("requests by worker %v, want %v", seen, want)
		}
	})
}

// Without a plugin a client steers nothing, and upstreams do not see what it tried.
func TestWithoutPlugin(t *testing.T) {
	leaked := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-leak", r.Header.Get(DefaultTargetHeader))
		echo(w, r)
	}
	a, b := backend(t, "a", leaked), backend(t, "b", leaked)
	s := &setup{t: t, done: make(chan error, 1)}
	s.serve(Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a, b}}}})
	body := strings.Repeat("0123456789", 50_000)
	count := map[string]int{}
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		for range 10 {
			resp, text := do(t, cl, request(t, "POST", s.url, body, DefaultTargetHeader, a))
			count[resp.Header.Get("x-backend")]++
			if resp.Header.Get("x-leak") != "" || text != body {
				t.Errorf("leak %q, %d bytes", resp.Header.Get("x-leak"), len(text))
			}
		}
	})
	if count["a"] != 10 || count["b"] != 10 {
		t.Errorf("%v, want 10 and 10", count)
	}
}

// Told to stop, the gateway finishes what it has begun and takes nothing new.
func TestGracefulStop(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		fmt.Fprint(w, "complete")
	})
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	answer := make(chan string)
	go func() {
		resp, err := http.Get(s.url)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		answer <- string(text)
	}()
	<-arrived
	s.stop()
	// Once it no longer listens, the shutdown has begun.
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			break
		}
		conn.Close()
	}
	close(release)
	if got := <-answer; got != "complete" {
		t.Errorf("the request in flight got %q", got)
	}
	if err := <-s.done; err != nil {
		t.Errorf("Serve returned %v", err)
	}
	s.wantCounts(map[string]uint64{"log": 1, "done": 1, "delete": 1})
}

func TestStopCutsWhatDoesNotEnd(t *testing.T) {
	arrived := make(chan struct{})
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	})
	s := start(t, hostsim.Config{}, Config{ShutdownTimeout: 1, Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	failed := make(chan error)
	go func() {
		_, err := http.Get(s.url)
		failed <- err
	}()
	<-arrived
	s.stop()
	if err := <-failed; err == nil {
		t.Error("the request that does not end was not cut")
	}
	if err := <-s.done; err != nil {
		t.Errorf("Serve returned %v", err)
	}
	s.end()
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

// One request over loopback, through the plugin on one of two workers to an upstream and back, a connection per client.
func BenchmarkRequest(b *testing.B) {
	upstream := backend(b, "a", nil)
	s := start(b, hostsim.Config{Workers: 2}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{upstream}}}})
	cl := client(b, false)
	go func() {
		for range s.ended {
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		do(b, cl, request(b, "GET", s.url, "", "x-pick", upstream))
	}
}
