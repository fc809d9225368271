package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// All that happens in a soak happens once, over some thousands of requests. What it says of memory, and how long it takes,
// is not looked at.
func TestShortSoak(t *testing.T) {
	t.Parallel()
	s := settings{Version: wheel.Versions[0], Requests: 3000, Sessions: 400, Connections: 8, Replicas: 6, Workers: 2,
		Events: len(cycle), Crashes: true, IdleTimeout: 5 * time.Second, Limit: 10 * time.Minute, Progress: 10 * time.Second, Seed: 1, Short: true}
	rep, err := soak(t.Context(), s, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	if rep.Violated > 0 || !rep.ok() {
		var out bytes.Buffer
		rep.print(&out)
		t.Errorf("%s", &out)
	}
	if rep.Requests < s.Requests || rep.Events["crash"]+rep.Events["half_way_crash"]+rep.Events["kill"]+rep.Events["drain"] != 6 || rep.Checkpoints != 6 ||
		rep.Wrong != 1 || rep.Load.Began == 0 || rep.Load.Finished == 0 || rep.Load.Moved == 0 || rep.SessionsLeft != rep.Wrong-rep.Repaired {
		t.Errorf("less happened than was to happen: %+v", rep)
	}
	file := filepath.Join(t.TempDir(), "soak.json")
	if err := rep.write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	var read report
	if err != nil || json.Unmarshal(text, &read) != nil || read.Requests != rep.Requests || len(read.Samples) != len(rep.Samples) {
		t.Errorf("the report reads %+v, %v", read, err)
	}
}

// A soak that is interrupted ends, and reports.
func TestInterruptedSoak(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := settings{Version: wheel.Versions[0], Requests: 1 << 40, Sessions: 40, Connections: 4, Replicas: 6, Workers: 1,
		Events: 1, IdleTimeout: time.Minute, Limit: time.Hour, Seed: 1} // a line of progress each second
	lines := 0
	rep, err := soak(ctx, s, func(string) {
		if lines++; lines == 1 {
			cancel()
		}
	})
	if err != nil || !rep.Interrupted || rep.LimitReached || rep.Requests == 0 || rep.Violated > 0 || rep.ok() {
		t.Errorf("%+v, %v", rep, err)
	}
}

// stub is a gateway that gives the same answer to every request.
func stub(t *testing.T, answer string) *client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if _, err := io.WriteString(conn, answer); err != nil || strings.HasSuffix(answer, "cut") {
						return
					}
				}
			}()
		}
	}()
	s := settings{Connections: 1, Sessions: 10, IdleTimeout: time.Hour}
	r := &run{ctx: t.Context(), settings: s, gateway: &gateway{addr: l.Addr().String()}, events: map[string]int{}}
	c := &client{run: r, rng: random(1)}
	r.clients = append(r.clients, c)
	t.Cleanup(c.hangUp)
	return c
}

func answerOf(status, served, attempts int, reason string) string {
	by := ""
	if served >= 0 {
		by = fmt.Sprintf("x-served-by: %d\r\n", served)
	}
	return fmt.Sprintf("HTTP/1.1 %d X\r\n%sx-envoy-attempt-count: %d\r\nx-pinwheel-reason: %s\r\ncontent-length: 2\r\n\r\n{}", status, by, attempts, reason)
}

// The load sees what it is there to see.
func TestWhatViolates(t *testing.T) {
	const home = 1
	nothing := func(*run, *session) {}
	cases := []struct {
		name   string
		answer string
		before func(*run, *session)
		want   string // in the violation; empty: there is none
	}{
		{"stays", answerOf(200, home, 1, "pinned"), nothing, ""},
		{"moves", answerOf(200, 2, 1, "pinned"), nothing, "of replica 1 went to 2"},
		{"is placed anew at home", answerOf(200, home, 1, "placed"), nothing, "reason placed"},
		{"fails over from a replica that is well", answerOf(200, 2, 1, "failover_unhealthy"), nothing, "went to 2"},
		{"fails over from a dead one", answerOf(200, 2, 1, "failover_unhealthy"), func(r *run, _ *session) { r.ground.epochs[home].Add(1) }, ""},
		{"comes back after that", answerOf(200, 2, 1, "failover_unhealthy"), func(r *run, _ *session) { r.ground.epochs[home].Add(2) }, ""},
		{"another one is dead", answerOf(200, 2, 1, "failover_unhealthy"), func(r *run, _ *session) { r.ground.epochs[3].Add(1) }, "went to 2"},
		{"a retry", answerOf(200, 2, 2, "pinned"), nothing, "2 attempts"},
		{"a retry while one is dead", answerOf(200, 2, 2, "pinned"), func(r *run, _ *session) { r.ground.epochs[3].Add(1) }, ""},
		{"expires too soon", answerOf(200, 2, 1, "expired"), nothing, "reason expired"},
		{"expires", answerOf(200, 2, 1, "expired"), func(_ *run, s *session) { s.sent = time.Now().Add(-57 * time.Minute) }, ""},
		{"is placed where none may be", answerOf(200, 4, 1, "placed"), func(r *run, s *session) { s.home = unknown; r.ground.closing[4].Add(1) }, "takes no sessions"},
		{"is placed where some may be again", answerOf(200, 4, 1, "placed"), func(r *run, s *session) { s.home = unknown; r.ground.closing[4].Add(2) }, ""},
		{"no replica", answerOf(200, unknown, 1, "no_replica"), nothing, "by no replica"},
		{"503", answerOf(503, unknown, 1, ""), nothing, "status 503"},
		{"cut off", "cut", nothing, "while nothing went on"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cl := stub(t, c.answer)
			s := &session{id: "s", home: home, sent: time.Now()}
			c.before(cl.run, s)
			cl.turn(s, false)
			got := strings.Join(cl.run.violations, "; ")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("violations %q, want %q", got, c.want)
			}
		})
	}
}

// A crash costs a connection one request, and only while it lasts.
func TestCrashesCostOneRequest(t *testing.T) {
	for answer, want := range map[string][2]uint64{answerOf(503, unknown, 1, ""): {0, 1}, "cut": {1, 0}} {
		c := stub(t, answer)
		c.run.crash.Store(1)
		go func() {
			time.Sleep(pause)
			c.run.crash.Store(2)
		}()
		c.turn(&session{id: "s", home: 1, sent: time.Now()}, false)
		if got := [2]uint64{c.tally.Cut, c.tally.Refused}; got != want || c.run.violated != 1 {
			t.Errorf("%.12q: cut and refused %v, want %v; violations %q, want the one after the crash", answer, got, want, c.run.violations)
		}
	}
}

func TestUnpinnedAndReleases(t *testing.T) {
	c := stub(t, answerOf(200, 3, 1, "keyless"))
	c.unpinned("", "keyless")
	if c.run.violated != 0 || c.tally.served[3] != 1 || *c.tally.reasons["keyless"] != 1 {
		t.Errorf("%+v, %q", c.tally, c.run.violations)
	}
	c.unpinned("x", "oversized")
	c.finish(&session{id: "s", home: 1})
	if got := strings.Join(c.run.violations, "; "); !strings.Contains(got, "to be oversized: keyless") || !strings.Contains(got, "a release went to replica 3") {
		t.Errorf("violations %q", got)
	}
}

// A turn whose answer nobody waited for is decided, and tells the client nothing: neither where the session is nor that it has
// not expired.
func TestLeave(t *testing.T) {
	c := stub(t, answerOf(200, 2, 1, "pinned"))
	sent := time.Now().Add(-time.Minute)
	s := &session{id: "s", home: 1, sent: sent}
	c.leave(s)
	if c.tally.HungUp != 0 {
		t.Error("hung up without a connection")
	}
	if err := c.connect(); err != nil {
		t.Fatal(err)
	}
	c.leave(s)
	if c.tally.HungUp != 1 || c.run.decided.Load() != 1 || c.conn != nil || s.home != 1 || s.sent != sent || c.run.violated != 0 {
		t.Errorf("%+v, %d decided, session %+v, %q", c.tally, c.run.decided.Load(), s, c.run.violations)
	}
}

func TestDiffer(t *testing.T) {
	for _, c := range []struct {
		open, known      []int
		ghosts, repaired int
		want             int
	}{
		{[]int{3, 4}, []int{3, 4}, 0, 0, 0},
		{[]int{3, 5}, []int{3, 4}, 0, 0, 1},
		{[]int{3, 5}, []int{3, 4}, 1, 0, 0},
		{[]int{3, 5}, []int{3, 4}, 1, 1, 1},
		{[]int{3, 4}, []int{3, 4}, 1, 0, 1},
		{[]int{3, 4}, []int{3, 4}, 1, 1, 0},
		{[]int{2, 5}, []int{3, 4}, 0, 0, 1},
	} {
		r := &run{ghosts: c.ghosts}
		if got := r.differ(&report{SessionsOpen: c.open, SessionsKnown: c.known}, c.repaired); (got == 0) != (c.want == 0) {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestSeriesIsEven(t *testing.T) {
	var s series
	for i := range 5000 {
		s.add(sample{Requests: uint64(i)})
		if len(s.samples) > maxSamples {
			t.Fatalf("%d samples", len(s.samples))
		}
	}
	for i, x := range s.samples {
		if x.Requests != uint64(i*s.stride) {
			t.Fatalf("sample %d is of request %d, the stride is %d", i, x.Requests, s.stride)
		}
	}
	if len(s.samples) <= maxSamples/2 {
		t.Errorf("%d samples left", len(s.samples))
	}
}

func TestTrend(t *testing.T) {
	var samples []sample
	for i := range 101 { // climbs to the first tenth, then 5 bytes for each million of requests
		samples = append(samples, sample{Requests: uint64(i) * 1e6, RSS: int64(min(i, 10)*1000 + 5*i)})
	}
	got := trendOf(samples, func(s sample) int64 { return s.RSS })
	want := trend{First: 10050, Last: 10500, MaxOverMin: 10500.0 / 10050, Slope: 5}
	if got.First != want.First || got.Last != want.Last || got.MaxOverMin != want.MaxOverMin || got.Slope < 4.999 || got.Slope > 5.001 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := trendOf(nil, nil); got != (trend{}) {
		t.Errorf("of nothing %+v", got)
	}
}

func TestLinearMemories(t *testing.T) {
	const maps = `7f0000000000-7f0000010000 rw-p 00000000 00:00 0
7f0000010000-7f0280000000 ---p 00000000 00:00 0
7f0300000000-7f0300010000 rw-p 00000000 00:00 0
7f0300010000-7f0300030000 rw-p 00000000 00:00 0
7f0300030000-7f0580000000 ---p 00000000 00:00 0
7f0600000000-7f0600010000 rw-p 00000000 00:00 0
7f0600010000-7f0600020000 ---p 00000000 00:00 0
7f0700000000-7f0700010000 rw-p 00000000 08:01 77 /some/file
7f0700010000-7f0980000000 ---p 00000000 00:00 0
`
	if bytes, count := linearMemories(bufio.NewScanner(strings.NewReader(maps))); bytes != 0x40000 || count != 2 {
		t.Errorf("%d bytes in %d memories", bytes, count)
	}
}

// What stands behind the guard is the shipped module: its sections grow at their ends, and nothing in them is another byte
// but the two exports' functions.
func TestGuardAddsOnly(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	name, err := envoytest.Wasm(root)
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := guard(shipped)
	if err != nil {
		t.Fatal(err)
	}
	before, after := shipped[8:], guarded[8:]
	for len(before) > 0 && len(after) > 0 {
		id := before[0]
		if id != after[0] {
			t.Fatalf("section %d where %d was", after[0], id)
		}
		var b, a []byte
		b, before, _ = sized(before[1:])
		a, after, _ = sized(after[1:])
		switch id {
		case 3, 6, 10: // functions, globals, code: vectors with more at their ends
			n, skip := binary.Uvarint(b)
			m, skip2 := binary.Uvarint(a)
			added := map[byte]uint64{3: 2, 6: 1, 10: 2}[id]
			if m != n+added || !bytes.HasPrefix(a[skip2:], b[skip:]) {
				t.Errorf("section %d is not what it was with %d more", id, added)
			}
		case 7:
			if len(a) < len(b) || bytes.Equal(a, b) {
				t.Error("the exports lead where they led")
			}
		default:
			if !bytes.Equal(a, b) {
				t.Errorf("section %d is another", id)
			}
		}
	}
	if len(before)+len(after) > 0 {
		t.Errorf("%d and %d bytes left over", len(before), len(after))
	}
	for _, bad := range []string{"", "ELF", "\x00asm\x01\x00\x00\x00", "\x00asm\x01\x00\x00\x00\x07\x20\x01"} {
		if _, err := guard([]byte(bad)); err == nil {
			t.Errorf("%q was guarded", bad)
		}
	}
}
