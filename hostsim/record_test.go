package hostsim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// mixed is a script that comes by everything that a recording has to hold.
const mixed = `
	configure tickevery 100
	configure mdef 0 requests
	configure random
	tick minc requests 1
	tick sdadd ticks
	tick gonow
	tick when 2 httpcall side 50 body% :method=GET :path=/x :authority=side
	http_call_response pairs 6
	http_call_response buf 4 0 100
	request_headers get 0 x-session-id
	request_headers pairs 0
	request_headers add 0 x-more a%b
	request_headers prop request$path
	request_headers sdadd requests
	request_headers hostnow
	request_headers garbage 50 100000
	request_headers print standard%error
	request_headers when 2 reply 418 teapot x-why=because
	request_headers when 3 panic on%purpose
	request_body buf 0 0 1000000
	request_body bufset 0 0 0 front
	response_headers mapsize 2
	response_headers when 2 close 0
	log propint response$code`

// playMixed runs a mixed scenario: two workers, ticks, call-outs, bodies that are not text, a local reply, a crash with its
// reload, a change of the configuration.
func playMixed(t testing.TB, h *Host) {
	t.Helper()
	request := Headers{{":method", "POST"}, {":path", "/\u00e4?\x01"}, {":authority", "a"}, {"x-session-id", "\xff\xfe id"}}
	for i := range 8 {
		w := h.Worker(i % 2)
		s := w.NewStream()
		step, err := s.RequestHeaders(request, false)
		if err == nil && step.Flow == Forward {
			_, err = s.RequestBody([]byte(strings.Repeat("\x00\xff{}", i*100)), true)
			ok(t, err)
			_, err = s.ResponseHeaders(reply, true)
		}
		if err != nil && !errors.Is(err, ErrTrap) {
			t.Fatal(err)
		}
		if err := s.End(EndReason(i % 3)); err != nil && !errors.Is(err, ErrTrap) {
			t.Fatal(err)
		}
		h.Advance(150 * time.Millisecond)
	}
	ok(t, h.Reconfigure([]byte("request_headers log 2 second\nrequest_headers return 0")))
	for i := range 4 {
		s := h.Worker(i % 2).NewStream()
		_, err := s.RequestHeaders(get, true)
		ok(t, err)
		ok(t, s.End(EndClientGone))
	}
	h.Drain()
	h.Advance(time.Second)
}

// recordMixed records it.
func recordMixed(t testing.TB, o RecordOptions) []byte {
	t.Helper()
	var out bytes.Buffer
	c := Config{Wasm: guest(t, "probe"), PluginConfig: []byte(mixed), Workers: 2, Seed: 7,
		FailurePolicy: FailReload, ReloadBackoff: 100 * time.Millisecond, Env: map[string]string{"A": "b", "GOGC": "50"},
		Recorder: NewRecorder(&out, o)}
	c.HTTPCall = func(call *HTTPCall) bool {
		call.Respond(HTTPResponse{Headers: Headers{{":status", "200"}}, Body: []byte("\x80answer"), After: 20 * time.Millisecond})
		return call.Cluster == "side"
	}
	h, err := New(context.Background(), c)
	ok(t, err)
	playMixed(t, h)
	crashed := false
	for _, e := range h.Logs() {
		crashed = crashed || strings.Contains(e.Message, "proxy_on_request_headers on worker")
	}
	if !crashed {
		t.Fatal("nothing crashed")
	}
	ok(t, h.Close())
	return out.Bytes()
}

// What a recording holds is enough to play all of it, and leaves every memory as it was.
func TestRecordingReplaysEqual(t *testing.T) {
	recording := recordMixed(t, RecordOptions{})
	report, err := Check(context.Background(), guest(t, "probe"), bytes.NewReader(recording))
	if err != nil {
		t.Fatal(err)
	}
	if !report.SameModule || report.Memories != report.VMs || report.VMs < 6 || report.Callbacks < 100 || report.HostCalls < 200 {
		t.Errorf("%+v", report)
	}
}

// What drove the host stands in the recording as events.
func TestEventsAreRecorded(t *testing.T) {
	recording := string(recordMixed(t, RecordOptions{}))
	for _, want := range []string{
		`"name":"request_headers","worker":0,"mono":1000000000,"stream":1,"headers":[[":method","POST"],[":path","/ä?\u0001"],[":authority","a"],["x-session-id",{"base64":"//4gaWQ="}]],"end_of_stream":false}`,
		`"name":"request_body","worker":1,"mono":1150000000,"stream":2,"data":{"base64":"AP97fQD/`,
		`"stream":1,"headers":[[":status","200"]],"end_of_stream":true}`,
		`"name":"tick","worker":-1,"mono":1100000000}`,
		`"call":4,"headers":[[":status","200"]],"data":{"base64":"gGFuc3dlcg=="},"trailers":[]}`,
		`"stream":2,"reason":"client_gone"}`,
		`"plugin_config":"request_headers log 2 second\nrequest_headers return 0"}`,
		`"kind":"event","name":"drain"`,
	} {
		if !strings.Contains(recording, want) {
			t.Errorf("no event with %s", want)
		}
	}
}

// Several goroutines at once, on the machine's own clock: lines of one virtual machine stay in order.
func TestConcurrentRecording(t *testing.T) {
	var out bytes.Buffer
	h, err := New(context.Background(), Config{Wasm: guest(t, "probe"), PluginConfig: []byte(mixed), Workers: 4, Clock: NewRealClock(),
		FailurePolicy: FailReload, ReloadBackoff: time.Nanosecond, Recorder: NewRecorder(&out, RecordOptions{})})
	ok(t, err)
	var wg sync.WaitGroup
	for i := range h.Workers() {
		wg.Go(func() {
			for range 25 {
				s := h.Worker(i).NewStream()
				_, _ = s.RequestHeaders(get, false) // it crashes now and then
				_, _ = s.RequestBody([]byte("body"), true)
				_ = s.End(EndNormal)
			}
		})
	}
	wg.Wait()
	ok(t, h.Close())
	report, err := Check(context.Background(), guest(t, "probe"), &out)
	ok(t, err)
	if report.Memories != report.VMs || report.Callbacks < 200 {
		t.Errorf("%+v", report)
	}
}

// Thousands of streams leave the same memory behind, bit for bit; RECORD_STREAMS sets another number.
func TestLongRecordingIsBitIdentical(t *testing.T) {
	n := 5000
	if text := os.Getenv("RECORD_STREAMS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		ok(t, err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "recording.jsonl"))
	ok(t, err)
	defer file.Close()
	h, err := New(context.Background(), Config{Wasm: guest(t, "greeter"), Recorder: NewRecorder(file, RecordOptions{})})
	ok(t, err)
	for i := range n {
		s := h.Worker(0).NewStream()
		_, err := s.RequestHeaders(Headers{{":method", "GET"}, {"x-name", strconv.Itoa(i)}}, true)
		ok(t, err)
		_, err = s.ResponseHeaders(reply, true)
		ok(t, err)
		ok(t, s.End(EndNormal))
	}
	ok(t, h.Close())
	_, err = file.Seek(0, io.SeekStart)
	ok(t, err)
	report, err := Check(context.Background(), guest(t, "greeter"), file)
	ok(t, err)
	if report.Memories != 3 || report.Callbacks < uint64(3*n) {
		t.Errorf("%+v", report)
	}
}
