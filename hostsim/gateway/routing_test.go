package gateway

import (
	"net/http"
	"reflect"
	"strconv"
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
	own := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(attemptCount, "77") // of a gateway behind this one
		echo(w, r)
	}
	b, c := backend(t, "b", own), backend(t, "c", own)
	s := start(t, hostsim.Config{}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{dead1, dead2, b, c}}}})
	body := strings.Repeat("0123456789", 20_000)
	bothProtocols(t, func(t *testing.T, cl *http.Client) {
		for pick, want := range map[string]string{dead1 + "," + c: "c", dead1 + "," + dead2 + "," + b: "b"} {
			resp, text := do(t, cl, request(t, "POST", s.url, body, "x-pick", pick))
			if got := resp.Header.Get("x-backend"); resp.StatusCode != 200 || got != want || text != body {
				t.Errorf("pick %s: %d from %q with %d bytes, want %q", pick, resp.StatusCode, got, len(text), want)
			}
			if got, want := resp.Header.Values(attemptCount), strconv.Itoa(strings.Count(pick, ",")+1); len(got) != 1 || got[0] != want {
				t.Errorf("pick %s: %q attempts, want %s", pick, got, want)
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
		if resp, text := do(t, client(t, false), r); resp.StatusCode != 503 || text == "" || resp.Header.Get(attemptCount) != map[string]string{"dead": "1", "none": "0"}[host] {
			t.Errorf("%s: %d %q, want 503 with a reason, and the number of attempts in %v", host, resp.StatusCode, text, resp.Header)
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

// A connection stays on one worker, with HTTP/2 all of its streams too; connections take turns.
func TestConnectionsHaveWorkers(t *testing.T) {
	a := backend(t, "a", nil)
	s := start(t, hostsim.Config{Workers: 3}, Config{Clusters: []Cluster{{Name: "llm", Hosts: []string{a}}}})
	bothProtocols(t, func(t *testing.T, _ *http.Client) {
		seen := map[int]int{}
		for range 3 {
			cl := client(t, strings.HasSuffix(t.Name(), "2"))
			cl.Transport.(*http.Transport).MaxConnsPerHost = 1 // else a request may dial while the last one's connection is on its way back
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
