package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The ratio means something only while the gateway calls into both modules
// equally often.
func TestFloorExportsTheCallbacksOfPinwheel(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	pinwheel, err := envoytest.Wasm(root)
	if err != nil {
		t.Fatal(err)
	}
	floor, err := buildFloor(t.Context(), root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := sameCallbacks(floor, pinwheel); err != nil {
		t.Error(err)
	}
	// The empty plugin is given Pinwheel's callbacks: it has more.
	if _, _, err := buildEmpty(t.Context(), root, t.TempDir(), pinwheel); err != nil {
		t.Error(err)
	}
}

func TestExportNames(t *testing.T) {
	const header = "\x00asm\x01\x00\x00\x00"
	cases := []struct {
		name, module string
		want         []string
		ok           bool
	}{
		{"empty", header, nil, true},
		{"two exports after another section", header + "\x01\x01\x00" + "\x07\x0b\x02" + "\x01a\x00\x05" + "\x02bc\x02\x80\x01", []string{"a", "bc"}, true},
		{"no wasm", "ELF", nil, false},
		{"section beyond the end", header + "\x07\x20\x01", nil, false},
		{"name beyond the end", header + "\x07\x03\x01\x09a", nil, false},
		{"entry cut off", header + "\x07\x04\x01\x01a\x00", nil, false},
	}
	for _, c := range cases {
		got, err := exportNames([]byte(c.module))
		if (err == nil) != c.ok || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

// inProcess runs the load process within the test.
func inProcess(t *testing.T) *load {
	t.Helper()
	orders, in := io.Pipe()
	out, answers := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- loadProcess(orders, answers) }()
	t.Cleanup(func() {
		in.Close()
		if err := <-done; err != nil {
			t.Errorf("load process: %v", err)
		}
	})
	l := &load{in: json.NewEncoder(in), out: json.NewDecoder(out)}
	if err := l.out.Decode(&l.replicas); err != nil || len(l.replicas) != maxReplicas {
		t.Fatalf("%d replicas, %v", len(l.replicas), err)
	}
	return l
}

func TestLoadCountsItsRequests(t *testing.T) {
	l := inProcess(t)
	for _, o := range []order{
		{Connections: 1, Sessions: 1, Requests: 1},
		{Connections: 4, Sessions: 10, Requests: 10},
		{Connections: 7, Sessions: 100, Requests: 100},
		{Connections: 3, Sessions: 3, Requests: 2},
		{Connections: 4, Sessions: 10, Requests: 40, Body: 64},
		{Connections: 2, Sessions: 10, Requests: 20, Body: 100_000, InBody: true},
	} {
		o.Addr = l.replicas[0]
		if got, err := l.run(o); err != nil || got.Requests != o.Requests {
			t.Errorf("%+v: %d requests, %v", o, got.Requests, err)
		}
	}
	o := order{Addr: l.replicas[1], Connections: 2, Sessions: 2, Duration: 20 * time.Millisecond}
	if got, err := l.run(o); err != nil || got.Requests == 0 || got.Elapsed < o.Duration {
		t.Errorf("%+v: %+v, %v", o, got, err)
	}
}

func TestRequestsWithABody(t *testing.T) {
	for _, o := range []order{{Body: 64}, {Body: 64, InBody: true}, {Body: 5000, SDK: true}, {Body: 200_000, InBody: true}} {
		text, places := o.request()
		setSession(text, places, 17)
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ User, Prompt string }
		if err := json.NewDecoder(req.Body).Decode(&body); err != nil || req.ContentLength != int64(o.Body) || !bytes.HasSuffix(text, []byte(`"}`)) {
			t.Errorf("%+v: %v, %d bytes", o, err, req.ContentLength)
		}
		header := req.Header.Get("x-session-id")
		if id := header + body.User; id != "rollout-00000017" || o.InBody != (header == "") {
			t.Errorf("%+v: id %q in the header, %q in the body", o, header, body.User)
		}
	}
}

func TestLoadReportsFailures(t *testing.T) {
	l := inProcess(t)
	closed, err := envoytest.OpenReplica("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	if _, err := l.run(order{Addr: closed.Addr, Connections: 1, Sessions: 1, Requests: 1}); err == nil {
		t.Error("no failure from a closed port")
	}
	if err := readAnswerFrom(t, "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\nno"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("error %v, want the status line", err)
	}
	if err := readAnswerFrom(t, answer); err != nil {
		t.Error(err)
	}
}

func readAnswerFrom(t *testing.T, text string) error {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	go func() {
		defer server.Close()
		// In pieces: an answer may arrive in any number of reads.
		for _, part := range []string{text[:9], text[9:20], text[20:]} {
			if _, err := io.WriteString(server, part); err != nil {
				return
			}
		}
	}()
	return readAnswer(client, make([]byte, 4096))
}

func TestTableFor(t *testing.T) {
	for sessions, want := range map[int]int{30000: 32768, 1000: 2048, 900: 1024, 16: 32} {
		if got := tableFor(sessions); got != want || got < sessions {
			t.Errorf("tableFor(%d) = %d, want %d", sessions, got, want)
		}
	}
}

func TestEnvoyVersionOfWhatIsNoEnvoy(t *testing.T) {
	if v, err := envoyVersion(filepath.Join(t.TempDir(), "no-envoy")); err == nil {
		t.Errorf("version %q of a missing binary", v)
	}
}

func TestRowsOfRounds(t *testing.T) {
	base := series{{CPU: 50}, {CPU: 70}, {CPU: 60}}
	floor, pinwheel := series{{CPU: 60}, {CPU: 80}, {CPU: 71}}, series{{CPU: 65}, {CPU: 85}, {CPU: 75}}
	// Differences are taken within each round: 10, 10, 11 and 15, 15, 15.
	r := newRow("", withPinwheel, "added", "us", pinwheel.added(base))
	if r.Median != 15 || r.Q1 != 15 || r.Q3 != 15 || r.N != 3 {
		t.Errorf("added %+v", r)
	}
	r = newRow("", withPinwheel, "added, of floor", times, combine(pinwheel.added(base), floor.added(base), over))
	if r.Median != 1.5 || r.Q1 != 1.432 || r.text() != "1.50 [1.43..1.50]" {
		t.Errorf("ratio %+v", r)
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		v       []float64
		q, want float64
	}{
		{[]float64{7}, 0.25, 7}, {[]float64{1, 3}, 0.5, 2}, {[]float64{1, 2, 3, 4, 5}, 0.75, 4},
		{[]float64{-3, -1}, 0.25, -2.5}, {[]float64{0, 0}, 0.5, 0}, {[]float64{123456}, 0.5, 123500},
	} {
		if got := quantile(c.v, c.q); got != c.want {
			t.Errorf("quantile(%v, %v) = %v, want %v", c.v, c.q, got, c.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for want, x := range map[string]float64{"0": 0, "1.30": 1.3, "-2.21": -2.21, "0.00": -0.004, "12.4": 12.42, "2": 2, "123": 123.4, "30,000": 30000, "-1,234,567": -1234567} {
		if got := number(x); got != want {
			t.Errorf("number(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestTables(t *testing.T) {
	rows := []row{
		newRow("GET", bare, "CPU", "us", []float64{50}),
		newRow("GET", withFloor, "CPU", "us", []float64{60, 62}),
		newRow("GET", withFloor, "over bare", times, []float64{1.25}),
		newRow("POST", bare, "CPU", "us", []float64{70}),
	}
	want := `
|      |       |         CPU, us | over bare |
|------|-------|----------------:|----------:|
| GET  | bare  |              50 |           |
|      | floor | 61 [60.5..61.5] |      1.25 |
| POST | bare  |              70 |           |
`
	if got := "\n" + table(rows, markdown); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := table(rows, plain); !strings.Contains(got, "floor  61 [60.5..61.5]  1.25") {
		t.Errorf("got\n%s", got)
	}
}

func TestCompare(t *testing.T) {
	of := func(a, b, added float64) []result {
		return []result{{Experiment: "sticky", Rows: []row{
			newRow("GET", withPinwheel, "CPU", "us", []float64{a}),
			newRow("GET", withPinwheel, "over floor", times, []float64{a, b}),
			newRow("GET", bare, "over floor", times, []float64{added}),
		}}}
	}
	kept := map[string]result{"sticky": of(1, 2, 1)[0]}
	for _, c := range []struct {
		now  []result
		want string
	}{
		{of(1.5, 2.5, 1.5), "within noise"}, {of(3, 3, 1), "+100%"}, {of(0.9, 0.9, 1), "-40%"},
		{[]result{{Experiment: "steps"}}, "No kept results"},
	} {
		var out bytes.Buffer
		if compare(&out, kept, c.now); !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), "CPU") {
			t.Errorf("no %q in\n%s", c.want, out.String())
		}
	}
}

func TestVerdict(t *testing.T) {
	most, least := goal{bound: 1.3}, goal{bound: 5, least: true}
	for _, c := range []struct {
		g    goal
		x    float64
		ok   bool
		want string
	}{
		{most, 1.3, true, "met"}, {most, 1.31, true, "missed"}, {least, 5, true, "met"}, {least, 4.9, true, "missed"}, {least, 9, false, "not measured"},
	} {
		if got := c.g.verdict(row{Median: c.x}, c.ok); got != c.want {
			t.Errorf("%+v of %v: %q, want %q", c.g, c.x, got, c.want)
		}
	}
}

// The page is what the results make, and nothing was edited by hand.
func TestPage(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	kept, err := readResults(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page(kept) {
		t.Error("docs/benchmarks.md is not what the results make: go run ./examples/envoy/bench -page")
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "|") && len(line) > 140 {
			t.Errorf("a long line: %s", line)
		}
	}
	for name, r := range kept {
		if name == soak.name {
			continue
		}
		if _, err := choose(name); err != nil {
			t.Error(err)
		}
		if r.Settings.Small {
			t.Errorf("%s: results of -small", name)
		}
	}
}

func TestCommandOf(t *testing.T) {
	got := commandOf([]string{"-only", "sticky", "--rounds=3", "-duration", "1s", "-update", "-json", "x"})
	if want := "go run ./examples/envoy/bench --rounds=3 -duration 1s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose(""); err != nil || len(all) != len(experiments()) {
		t.Errorf("%d experiments, %v", len(all), err)
	}
	if e, err := choose("sticky"); err != nil || e[0].name != "sticky" {
		t.Errorf("%v, %v", e, err)
	}
	if _, err := choose("sticky,nothing"); err == nil {
		t.Error("no error for an experiment that is not there")
	}
}
