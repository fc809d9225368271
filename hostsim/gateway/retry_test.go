package gateway

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// cutting reads n bytes of the request and cuts the connection before it has answered.
func cutting(n int64, asked *atomic.Int64) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.CopyN(io.Discard, r.Body, n)
		panic(http.ErrAbortHandler)
	}
}

// A host that cuts a request before its response has begun costs it an attempt: the next host gets all of it.
func TestResetGoesToTheNextEntry(t *testing.T) {
	var asked atomic.Int64
	body := strings.Repeat("0123456789", 20_000)
	for _, taken := range []int64{0, 1000, int64(len(body))} {
		cut, good := backend(t, "cut", cutting(taken, &asked)), backend(t, "good", echo)
		s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{cut, good}}}})
		s.forgetEnds()
		bothProtocols(t, func(t *testing.T, c *http.Client) {
			for _, body := range []string{"", body} {
				before := asked.Load()
				resp, text := do(t, c, request(t, "POST", s.url, body, "x-pick", cut+","+good))
				if resp.StatusCode != 200 || resp.Header.Get("x-backend") != "good" || text != body || asked.Load() != before+1 {
					t.Errorf("cut after %d of %d: status %d from %q with %d bytes", taken, len(body), resp.StatusCode, resp.Header.Get("x-backend"), len(text))
				}
				if got := resp.Header.Get(attemptCount); got != "2" {
					t.Errorf("%s attempts, want 2", got)
				}
			}
		})
	}
}

// A host may cut a request whose client still has to send some of it: the next one is asked at once and gets all of it.
func TestResetWhileTheClientSends(t *testing.T) {
	bothProtocols(t, func(t *testing.T, c *http.Client) {
		var asked atomic.Int64
		arrived := make(chan struct{})
		cut := backend(t, "cut", func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			_, _ = io.CopyN(io.Discard, r.Body, 4)
			conn, _, err := http.NewResponseController(w).Hijack() // a handler that panics reads on
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		})
		good := backend(t, "good", func(w http.ResponseWriter, r *http.Request) { close(arrived); echo(w, r) })
		s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{cut, good}}}})
		r := request(t, "POST", s.url, "", "x-pick", cut+","+good)
		body, client := io.Pipe()
		r.Body, r.ContentLength = body, -1
		go func() {
			_, _ = io.WriteString(client, "half")
			<-arrived
			_, _ = io.WriteString(client, "rest")
			client.Close()
		}()
		if resp, text := do(t, c, r); resp.StatusCode != 200 || text != "halfrest" || asked.Load() != 1 {
			t.Errorf("status %d, %q, %d cut", resp.StatusCode, text, asked.Load())
		}
	})
}

// What has left beyond the limit is not kept, and so the request ends with its host.
func TestResetBeyondTheLimit(t *testing.T) {
	var asked atomic.Int64
	body := strings.Repeat("0123456789", 10_000) // one chunk more than the limit
	cut := backend(t, "cut", cutting(int64(len(body)), &asked))
	other := backend(t, "other", cutting(0, &asked))
	s := start(t, hostsim.Config{}, Config{BufferLimit: 64 << 10, Clusters: []Cluster{{Name: "llm", Hosts: []string{cut, other}}}})
	resp, _ := do(t, client(t, false), request(t, "POST", s.url, body, "x-pick", cut))
	if resp.StatusCode != 503 || asked.Load() != 1 || resp.Header.Get(attemptCount) != "1" {
		t.Errorf("status %d, %d hosts asked, attempts %q", resp.StatusCode, asked.Load(), resp.Header.Get(attemptCount))
	}
	if got, want := s.end(), "upstream="+cut+" cluster=llm details="+strings.ReplaceAll(errReset.Error(), " ", "_"); got != want {
		t.Errorf("the plugin read %q, want %q", got, want)
	}
}

// No request is sent to more hosts than Attempts.
func TestResetsEnd(t *testing.T) {
	var asked atomic.Int64
	var hosts []string
	for range 5 {
		hosts = append(hosts, backend(t, "cut", cutting(0, &asked)))
	}
	s := start(t, hostsim.Config{}, Config{Attempts: 4, Clusters: []Cluster{{Name: "llm", Hosts: hosts}}})
	resp, _ := do(t, client(t, false), request(t, "POST", s.url, "body"))
	if resp.StatusCode != 503 || asked.Load() != 4 || resp.Header.Get(attemptCount) != strconv.Itoa(4) {
		t.Errorf("status %d, %d hosts asked, attempts %q", resp.StatusCode, asked.Load(), resp.Header.Get(attemptCount))
	}
}
