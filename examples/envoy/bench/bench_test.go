package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
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
	if err := l.out.Decode(&l.replicas); err != nil || len(l.replicas) != 3 {
		t.Fatalf("replicas %q, %v", l.replicas, err)
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
	for _, o := range []order{{Body: 64}, {Body: 64, InBody: true}, {Body: 5000}, {Body: 200_000, InBody: true}} {
		text := o.appendRequest(nil, 17, strings.Repeat("x", o.Body))
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

func TestReport(t *testing.T) {
	mk := func(name string, cpu ...float64) *arm {
		a := &arm{name: name, startUp: time.Second, wasmBytes: 3 << 20, resident: 64 << 20}
		for _, c := range cpu {
			a.rounds = append(a.rounds, round{cpu: c, rate: 1e6 / c})
		}
		return a
	}
	r := newReport(settings{Rounds: 3, Duration: time.Second, Pin: true},
		[]*arm{mk(bare, 50, 70, 60), mk(withFloor, 60, 80, 71), mk(withPinwheel, 65, 85, 75)}, "1.2.3")
	// Differences are taken within each round: 10, 10, 11 and 15, 15, 15.
	if r.Arms[1].Added != 10 || r.Arms[2].Added != 15 || r.Ratio != 1.5 || r.Arms[0].CPU != 60 || r.Arms[0].CPUMin != 50 || r.Arms[0].CPUMax != 70 {
		t.Errorf("report %+v", r)
	}
	var out bytes.Buffer
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Envoy 1.2.3", "+15.0 us", "3.0 MiB", "bare: no filter; floor: the same host calls", "adds 1.50 times"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestMedian(t *testing.T) {
	for want, v := range map[float64][]float64{3: {9, 3, 1}, 2.5: {4, 1, 2, 3}, 7: {7}} {
		if got := median(v); got != want {
			t.Errorf("median(%v) = %v, want %v", v, got, want)
		}
	}
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
