package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// parts sends a stream on as far as its name says.
var parts = []struct {
	name string
	send func(s *hostsim.Stream, headers hostsim.Headers) error
}{
	{"before any header", func(*hostsim.Stream, hostsim.Headers) error { return nil }},
	{"after the request headers", func(s *hostsim.Stream, h hostsim.Headers) error {
		_, err := s.RequestHeaders(h, true)
		return err
	}},
	{"within the request body", func(s *hostsim.Stream, h hostsim.Headers) error {
		_, err := s.RequestHeaders(h, false)
		if err == nil {
			_, err = s.RequestBody([]byte("{"), false)
		}
		return err
	}},
	{"after the response headers", func(s *hostsim.Stream, h hostsim.Headers) error {
		_, err := s.RequestHeaders(h, true)
		if err == nil {
			_, err = s.ResponseHeaders(hostsim.Headers{{":status", "200"}}, false)
		}
		return err
	}},
	{"within the response", func(s *hostsim.Stream, h hostsim.Headers) error {
		_, err := s.RequestHeaders(h, true)
		if err == nil {
			_, err = s.ResponseHeaders(hostsim.Headers{{":status", "200"}}, false)
		}
		if err == nil {
			_, err = s.ResponseBody([]byte("data: [DONE]\n\n"), false)
		}
		return err
	}},
	{"after a failed connection", func(s *hostsim.Stream, h hostsim.Headers) error {
		_, err := s.RequestHeaders(h, true)
		if err == nil {
			_, err = s.ResponseHeaders(hostsim.Headers{{":status", "503"}}, true)
		}
		return err
	}},
	{"complete", func(s *hostsim.Stream, h hostsim.Headers) error {
		_, err := s.RequestHeaders(h, true)
		if err == nil {
			_, err = s.ResponseHeaders(hostsim.Headers{{":status", "200"}}, true)
		}
		return err
	}},
}

var endReasons = map[string]hostsim.EndReason{
	"normal": hostsim.EndNormal, "client gone": hostsim.EndClientGone,
	"upstream reset": hostsim.EndUpstreamReset, "timeout": hostsim.EndTimeout,
}

// mustRun fails unless that many requests run, by the workers' slots in shared
// data and by the gauges.
func (g *gateway) mustRun(want int) {
	g.t.Helper()
	slots, gauges := 0, 0
	for _, n := range g.running() {
		slots += n
	}
	for _, c := range g.record("default").List {
		n := g.gauge("inflight", c.Address)
		if n < 0 {
			g.t.Errorf("%d requests running on %s", n, c.Address)
		}
		gauges += int(n)
	}
	if slots != want || gauges != want {
		g.t.Errorf("%d running requests in shared data, %d in gauges, want %d", slots, gauges, want)
	}
}

// envoyproxy/envoy#28826 and maximhq/bifrost#7005: streams that ended without
// earlier callbacks, or that were counted as ended more than once.
func TestEveryEndCountsOnce(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	g.on(0, turnOf("kept")) // and each worker has a slot from here on
	g.on(1, turnOf("kept"))
	kept := g.begin(0, "kept")
	begun := 0
	for _, part := range parts {
		for why, reason := range endReasons {
			for _, id := range []string{"s", "", strings.Repeat("x", 300)} {
				s := g.Worker(begun % 2).NewStream()
				begun++
				if err := part.send(s, turnHeaders(id)); err != nil {
					t.Fatal(err)
				}
				running := 2
				if part.name == "before any header" {
					running = 1
				}
				g.Advance(2 * tick)
				g.mustRun(running)
				g.end(s, reason)
				g.end(s, reason)
				g.Advance(2 * tick)
				if g.mustRun(1); t.Failed() {
					t.Fatalf("stream of %.20q, %s, end %s", id, part.name, why)
				}
			}
		}
	}
	g.end(kept, hostsim.EndNormal)
	g.Advance(2 * tick)
	g.mustRun(0)
	if n := g.sessions("default"); n != 2 {
		t.Errorf("%d sessions open, want kept and s", n)
	}
	c := g.Counters().Callbacks
	if streams := uint64(begun + 3); c["proxy_on_delete"] != streams {
		t.Errorf("%d streams, %d deleted", streams, c["proxy_on_delete"])
	}
}

// Many requests on one replica end in another order than they began.
func TestOverlappingTurnsAreCounted(t *testing.T) {
	g := startGateway(t, 2, threeReplicas)
	var open []*hostsim.Stream
	for i := range 30 {
		open = append(open, g.begin(i%2, []string{"a", "b", "c", ""}[i%4]))
	}
	for i, n := range []int{7, 29, 0, 15, 14, 16, 3} {
		g.Advance(2 * tick)
		g.mustRun(30 - i)
		g.end(open[n], hostsim.EndClientGone)
		open[n] = nil
	}
	for _, s := range open {
		if s != nil {
			g.end(s, hostsim.EndNormal)
		}
	}
	g.Advance(2 * tick)
	g.mustRun(0)
	g.mustOpen(1, 1, 1)
}

// A local reply is no running request.
func TestReleasesAreNotInFlight(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	g.turn("a")
	g.turn("a")
	s := g.Worker(0).NewStream()
	h := turnHeaders("a")
	h.Set(":path", "/finish_session")
	if step, err := s.RequestHeaders(h, false); err != nil || step.Flow != hostsim.Reply {
		t.Fatalf("%v, %v", step.Flow, err)
	}
	g.Advance(2 * tick)
	g.mustRun(0)
	g.end(s, hostsim.EndClientGone)
	g.Advance(2 * tick)
	g.mustRun(0)
	g.mustOpen(0, 0)
}

// maximhq/bifrost#7005: the end was looked for in chunks.
func TestChunksAreNotSeen(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	s := g.begin(0, "a")
	if _, err := s.ResponseHeaders(hostsim.Headers{{":status", "200"}, {"content-type", "text/event-stream"}}, false); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(g.Counters().Callbacks, g.Counters().HostCalls)
	for i := range 50 {
		chunk := []string{"data: [DO", "NE]\n\n", "", "data: {}\n\n"}[i%4]
		if step, err := s.ResponseBody([]byte(chunk), i == 49); err != nil || string(step.Data) != chunk {
			t.Fatalf("chunk %d: %q, %v", i, step.Data, err)
		}
	}
	if after := fmt.Sprint(g.Counters().Callbacks, g.Counters().HostCalls); after != before {
		t.Errorf("50 chunks called the plugin:\n%s\n%s", before, after)
	}
	g.Advance(2 * tick)
	g.mustRun(1)
	g.end(s, hostsim.EndNormal)
	g.Advance(2 * tick)
	g.mustRun(0)
}

// The pin of a session outlives any turn of it: ticks renew the pins of running
// turns.
func TestALongTurnKeepsItsPin(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 30 * time.Second} {
		g := startGateway(t, 2, twoReplicas+`,"session":{"idle_timeout":"`+timeout.String()+`"}`)
		s := g.begin(0, "long")
		home := replicaOf(s)
		g.turn("short")
		for range 10 {
			g.Advance(timeout)
			if n := g.sessions("default"); n > 2 {
				t.Fatalf("%d sessions", n)
			}
		}
		if r := g.on(1, turnOf("long")); r.reason != "pinned" || r.replica != home {
			t.Errorf("timeout %s: a second turn during a long one is %s on %s, want pinned on %s", timeout, r.reason, r.replica, home)
		}
		if r := g.on(1, turnOf("short")); r.reason != "placed" && r.reason != "expired" {
			t.Errorf("timeout %s: an idle session is %s", timeout, r.reason)
		}
		g.Advance(3 * timeout)
		g.end(s, hostsim.EndNormal)
		g.Advance(timeout / 2)
		if r := g.on(1, turnOf("long")); r.reason != "pinned" || r.replica != home {
			t.Errorf("timeout %s: half a timeout after the long turn the session is %s on %s, want pinned on %s", timeout, r.reason, r.replica, home)
		}
		g.Advance(2 * timeout)
		if n := g.sessions("default"); n != 0 {
			t.Errorf("timeout %s: %d sessions open after all are idle", timeout, n)
		}
	}
}

// maximhq/bifrost#7005, all its streams: the end of a stream is that of its answer
// whatever its chunks say, counts once, and what was answered to the last event is no
// failure of the replica.
func TestStreamedAnswersEndOnce(t *testing.T) {
	const done = "data: [DONE]\n\n"
	g := startGateway(t, 2, twoReplicas+`,"health":{"failures":1}`)
	home := g.turn("s").replica
	for _, tt := range []struct {
		name   string
		chunks []string
		reason hostsim.EndReason
	}{
		{"[DONE] in two chunks", []string{"data: {}\n\n", done[:9], done[9:]}, hostsim.EndNormal},
		{"empty chunks behind it", []string{done, "", "", ""}, hostsim.EndNormal},
		{"then the client leaves", []string{"data: {}\n\n", done}, hostsim.EndClientGone},
		{"then the replica resets", []string{"data: {}\n\n", done}, hostsim.EndUpstreamReset},
		{"reset without it", []string{"data: {}\n\n"}, hostsim.EndUpstreamReset},
		{"reset at the first chunk", nil, hostsim.EndUpstreamReset},
		{"and again", []string{done}, hostsim.EndNormal},
	} {
		s := g.begin(0, "s")
		if _, err := s.ResponseHeaders(hostsim.Headers{{":status", "200"}, {"content-type", "text/event-stream"}}, false); err != nil {
			t.Fatal(err)
		}
		for i, chunk := range tt.chunks {
			last := i == len(tt.chunks)-1 && tt.reason == hostsim.EndNormal
			if step, err := s.ResponseBody([]byte(chunk), last); err != nil || string(step.Data) != chunk {
				t.Fatalf("%s: chunk %d: %q, %v", tt.name, i, step.Data, err)
			}
		}
		g.Advance(2 * tick)
		g.mustRun(1)
		g.end(s, tt.reason)
		g.Advance(2 * tick)
		g.mustRun(0)
		if h := g.health(home); h.Failures != 0 || h.Cooling() {
			t.Errorf("%s: a failure of the replica: %+v", tt.name, h)
		}
		if r := g.turn("s"); r.reason != "pinned" || r.replica != home {
			t.Errorf("%s: the session is %s on %s", tt.name, r.reason, r.replica)
		}
	}
	if n := g.errors(faultCount); n != 0 {
		t.Errorf("%d counts would have gone below zero", n)
	}
}
