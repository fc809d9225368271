package livepage

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
)

const replicaA, replicaB = "10.0.0.1:80", "10.0.0.2:80"

func newPage(c Config) *Page {
	c.Upstreams = func() []gateway.Upstream { return []gateway.Upstream{{Cluster: "llm", Address: replicaA}} }
	c.Session = func(r *http.Request) string { return r.Header.Get("x-session-id") }
	c.ReasonHeader = "x-reason"
	c.Every = time.Millisecond
	return New(c)
}

// request is what a gateway tells of one whose answer begins.
func request(session, reason, upstream string) *gateway.Access {
	return &gateway.Access{Request: &http.Request{Header: http.Header{"X-Session-Id": {session}}}, Response: http.Header{"X-Reason": {reason}},
		Began: time.Now(), Status: 200, Upstream: upstream, Attempts: 1}
}

// viewing opens the page's stream of updates; next returns the first one from here on that pleases.
func viewing(t *testing.T, url string) (next func(func(update) bool) update, leave func()) {
	t.Helper()
	resp, err := http.Get(url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("content-type") != "text/event-stream" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func(pleases func(update) bool) update {
		t.Helper()
		for lines.Scan() {
			text, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var u update
			if err := json.Unmarshal([]byte(text), &u); err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if pleases(u) {
				return u
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return update{}
	}, func() { resp.Body.Close() }
}

func first(update) bool { return true }

// Who comes later gets what is kept, then what is new, once.
func TestSnapshotThenUpdates(t *testing.T) {
	p := newPage(Config{})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	p.Headers(request("s1", "placed", replicaA))
	next, leave := viewing(t, server.URL)
	defer leave()
	if u := next(first); !u.Snapshot || u.Count != 1 || len(u.Decisions) != 1 || u.Decisions[0].Session != "s1" || u.Decisions[0].Reason != "placed" ||
		len(u.Sessions) != 1 || u.Sessions[0].Home != replicaA || len(u.Replicas) != 1 || u.Reasons["placed"] != 1 {
		t.Errorf("the first update is %+v", u)
	}
	p.Headers(request("s1", "failover_removed", replicaB))
	p.End(request("s1", "", replicaB)) // had its say at the headers
	p.End(&gateway.Access{Request: &http.Request{}, Began: time.Now(), Detail: "no_answer"})
	seen := 0
	u := next(func(u update) bool { seen += len(u.Decisions); return u.Count == 3 })
	if u.Snapshot || seen != 2 || u.Decisions[len(u.Decisions)-1].Reason != "no_answer" || u.Reasons["failover_removed"] != 1 {
		t.Errorf("%d decisions, then %+v", seen, u)
	}
	late, leaveToo := viewing(t, server.URL)
	defer leaveToo()
	if u := late(first); !u.Snapshot || len(u.Decisions) != 3 || len(u.Sessions) != 1 || u.Sessions[0].Home != replicaB || u.Sessions[0].Turns != 2 {
		t.Errorf("a second viewer's first update is %+v", u)
	}
}

// A viewer that takes nothing holds nobody up, and finds everything in order when it does again.
func TestSlowViewer(t *testing.T) {
	p := newPage(Config{})
	defer p.Close()
	v := p.join()
	for n := 0; len(v.updates) < cap(v.updates); n++ {
		p.Headers(request(fmt.Sprint("early", n), "placed", replicaA))
	}
	const many = 10_000
	for n := range many { // returns: nothing waits for the viewer
		p.Headers(request(fmt.Sprint("s", n), "placed", replicaA))
	}
	p.mu.Lock()
	count := p.state.count
	p.mu.Unlock()
	for {
		var u update
		if err := json.Unmarshal(<-v.updates, &u); err != nil {
			t.Fatal(err)
		}
		if u.Count < count {
			continue
		}
		if !u.Snapshot || len(u.Decisions) != keptDecisions || len(u.Sessions) != keptSessions || u.Decisions[keptDecisions-1].Session != fmt.Sprint("s", many-1) {
			t.Errorf("after all of it: snapshot %v, %d decisions, %d sessions", u.Snapshot, len(u.Decisions), len(u.Sessions))
		}
		return
	}
}

// There are so many viewers and no more; a place that becomes free is taken again.
func TestViewers(t *testing.T) {
	p := newPage(Config{Viewers: 1})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	next, leave := viewing(t, server.URL)
	next(first)
	resp, err := http.Get(server.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("retry-after") == "" {
		t.Errorf("a second viewer: %d", resp.StatusCode)
	}
	leave()
	for {
		resp, err := http.Get(server.URL + "/events")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == 200 {
			break
		}
	}
	p.Close()
	if v := p.join(); v != nil {
		t.Error("a closed page takes viewers")
	}
}

// What a page keeps and tells is bounded, whatever clients send.
func TestBounds(t *testing.T) {
	p := newPage(Config{})
	long := strings.Repeat("x", 5000)
	for n := range 5000 {
		p.Headers(request(fmt.Sprint(n, long), fmt.Sprint(n%100, long), replicaA))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.encode(p.replicas(), 0, true, time.Now())
	s := &p.state
	if len(s.sessions) != keptSessions || s.recent.Len() != keptSessions || len(s.decisions) != keptDecisions || len(s.reasons) != keptReasons+1 || len(text) > 200<<10 {
		t.Errorf("%d sessions, %d decisions, %d reasons, %d bytes", len(s.sessions), len(s.decisions), len(s.reasons), len(text))
	}
}

// Requests count in the second in which they came, and a minute later no more.
func TestRates(t *testing.T) {
	s := newState()
	at := time.Unix(1_000_000, 0)
	for range 3 {
		s.add(decision{}, at)
	}
	s.add(decision{}, at.Add(2*time.Second))
	sum := func(now time.Time) (n int64) {
		for _, r := range s.rates(now) {
			n += r
		}
		return n
	}
	rates := s.rates(at.Add(3 * time.Second))
	if n := len(rates); n != keptSeconds-1 || rates[n-3] != 3 || rates[n-2] != 0 || rates[n-1] != 1 {
		t.Errorf("%v", rates)
	}
	if got := sum(at.Add(61 * time.Second)); got != 1 {
		t.Errorf("%d after a minute, want the last one", got)
	}
	if got := sum(at.Add(time.Hour)); got != 0 {
		t.Errorf("%d after an hour", got)
	}
}
