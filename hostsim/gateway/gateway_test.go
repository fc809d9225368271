package gateway

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

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

// When Serve has returned, the plugin has heard of every end, also of requests that were cut: the host may be closed.
func TestServeReturnsAfterTheLastEnd(t *testing.T) {
	const clients = 16
	arrived := make(chan struct{}, clients)
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	s := start(t, hostsim.Config{}, Config{ShutdownTimeout: 1, Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	var asking sync.WaitGroup
	for range clients {
		asking.Go(func() {
			if resp, err := client(t, false).Get(s.url); err == nil {
				resp.Body.Close()
			}
		})
	}
	for range clients {
		<-arrived
	}
	s.stop()
	<-s.done
	s.wantCounts(map[string]uint64{"log": clients, "done": clients, "delete": clients})
	if n := s.host.Worker(0).OpenStreams(); n != 0 {
		t.Errorf("%d streams open", n)
	}
	if err := s.host.Shutdown(); err != nil {
		t.Error(err)
	}
	asking.Wait()
}

// One request over loopback, through the plugin on one of two workers to an upstream and back, a connection per client.
func BenchmarkRequest(b *testing.B) {
	upstream := backend(b, "a", nil)
	s := start(b, hostsim.Config{Workers: 2}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{upstream}}}})
	cl := client(b, false)
	s.forgetEnds()
	b.ReportAllocs()
	for b.Loop() {
		do(b, cl, request(b, "GET", s.url, "", "x-pick", upstream))
	}
}

// Clients that come and go at once, on all workers: afterwards no stream is open, and each one's end was told once.
func TestManyClients(t *testing.T) {
	a := backend(t, "a", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		for range 5 {
			fmt.Fprintf(w, "data: %s\n\n", strings.Repeat("x", 1000))
			w.(http.Flusher).Flush()
		}
	})
	s := start(t, hostsim.Config{Workers: 3}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a, closedPort(t)}}}})
	s.forgetEnds()
	var clients sync.WaitGroup
	for i := range 8 {
		cl := client(t, i%2 == 0)
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			for range 25 {
				s.comeAndGo(cl, random)
			}
		})
	}
	clients.Wait()
	s.stop()
	<-s.done
	s.wantCounts(map[string]uint64{"log": 200, "done": 200, "delete": 200})
	for i := range s.host.Workers() {
		if got := s.host.Worker(i).OpenStreams(); got != 0 {
			t.Errorf("worker %d: %d streams open", i, got)
		}
	}
}

// comeAndGo makes a request of random size, and leaves one response in three in the middle.
func (s *setup) comeAndGo(cl *http.Client, random *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	what := []string{"", "", "wait", "reply"}[random.IntN(4)]
	r := request(s.t, "POST", s.url, strings.Repeat("y", random.IntN(100_000)), "x-do", what).WithContext(ctx)
	resp, err := cl.Do(r)
	if err != nil {
		s.t.Errorf("%v", err)
		return
	}
	defer resp.Body.Close()
	if random.IntN(3) == 0 {
		_, _ = io.CopyN(io.Discard, resp.Body, random.Int64N(4000))
		return
	}
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || what != "reply" && n != 5*1008 {
		s.t.Errorf("%q: %d bytes, error %v", what, n, err)
	}
}
