package hostsim

import (
	"bytes"
	"context"
	"errors"
	"strings"
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
