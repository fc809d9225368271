package hosttest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// telling is a script that tells at the end of a stream how it went, and which callbacks the plugin had.
const telling = `
	log prop response$code_details
	log propint response$flags
	log prop upstream$address
	`

// heard returns the callbacks of streams and what telling told, without context ids.
func heard(h *hosttest.Host) string {
	var out []string
	for _, e := range h.Logs() {
		name, args, _ := strings.Cut(strings.TrimPrefix(e.Message, "> "), " ")
		switch {
		case e.Worker < 0 || strings.HasSuffix(name, "_create") || name == "vm_start" || name == "configure" || name == "tick":
		case strings.HasPrefix(e.Message, "> "):
			_, args, _ = strings.Cut(args, " ")
			out = append(out, strings.TrimSpace(name+" "+args))
		default:
			_, value, _ := strings.Cut(e.Message, " = ")
			out = append(out, value)
		}
	}
	return strings.Join(out, "; ")
}

func TestUpstreamFaults(t *testing.T) {
	const request = "request_headers 4 1; "
	for _, tt := range []struct {
		response hosttest.Response
		status   int
		want     string
	}{
		{hosttest.Response{Fault: hosttest.ConnectFailure}, 503, "response_headers 3 0; response_body 98 1; log; 0 upstream_reset_before_response_started{remote_connection_failure}; 0 32; 0 10.0.0.1:80; done; delete"},
		{hosttest.Response{Fault: hosttest.ResetBeforeResponse}, 503, "response_headers 3 0; response_body 95 1; log; 0 upstream_reset_before_response_started{connection_termination}; 0 64; 0 10.0.0.1:80; done; delete"},
		{hosttest.Response{Fault: hosttest.Timeout, After: 15 * time.Second}, 504, "response_headers 3 0; response_body 24 1; log; 0 response_timeout; 0 4; 0 10.0.0.1:80; done; delete"},
		{hosttest.Response{Fault: hosttest.NoHost}, 503, "response_headers 3 0; response_body 19 1; log; 0 no_healthy_upstream; 0 2; 0 10.0.0.1:80; done; delete"},
		{hosttest.Response{Fault: hosttest.ResetInResponse, Chunks: []string{"one", "two"}}, 200, "response_headers 1 0; response_body 3 0; log; 0 upstream_reset_after_response_started{protocol_error}; 0 8388608; 0 10.0.0.1:80; done; delete"},
		{hosttest.Response{Fault: hosttest.ResetInResponse}, 200, "response_headers 1 0; log; 0 upstream_reset_after_response_started{protocol_error}; 0 8388608; 0 10.0.0.1:80; done; delete"},
		{hosttest.Response{Status: 500}, 500, "response_headers 1 1; log; 0 via_upstream; 0 0; 0 10.0.0.1:80; done; delete"},
	} {
		h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: telling})
		got := h.Do(0, hosttest.Request{Upstream: "10.0.0.1:80", Response: tt.response})
		if got.Status != tt.status || got.Hangs || got.Err != nil {
			t.Errorf("%+v: %+v", tt.response, got)
		}
		if said := heard(h); said != request+tt.want {
			t.Errorf("%+v: heard\n%s\nwant\n%s", tt.response, said, request+tt.want)
		}
		if after := h.Now().Sub(hostsim.VirtualEpoch); after != tt.response.After {
			t.Errorf("%+v: took %v", tt.response, after)
		}
	}
}

// A client can leave after each part; the plugin hears nothing further but the end.
func TestClientLeaves(t *testing.T) {
	parts := []string{"request_headers 4 0", "request_body 1 0", "request_body 1 1", "response_headers 1 0", "response_body 1 0"}
	for phase := hosttest.PhaseRequestHeaders; phase <= hosttest.PhaseResponseBody; phase++ {
		h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: telling})
		got := h.Do(0, hosttest.Request{LeaveAt: phase, Chunks: []string{"a", "b"}, Response: hosttest.Response{Chunks: []string{"c", "d"}}})
		want := strings.Join(parts[:phase], "; ") + "; log; 0 downstream_remote_disconnect; 0 16384; 1; done; delete"
		if said := heard(h); said != want {
			t.Errorf("phase %d: heard\n%s\nwant\n%s", phase, said, want)
		}
		if got.Hangs || got.Reset || got.Err != nil || (got.Status == 0) != (phase <= hosttest.PhaseRequest) {
			t.Errorf("phase %d: %+v", phase, got)
		}
	}
}

// The gateway asks the hosts that the plugin named, in order, as long as a retry is worth it.
func TestRetriesOverTheTargetList(t *testing.T) {
	down, busy := hosttest.Response{Fault: hosttest.ConnectFailure}, hosttest.Response{Status: 503, After: time.Second}
	reset, up := hosttest.Response{Fault: hosttest.ResetBeforeResponse}, hosttest.Response{Body: "hello"}
	for _, tt := range []struct {
		list     string
		retryOn  []string
		attempts int
		status   int
		want     string // attempts, flags, host
	}{
		{"up:1", nil, 0, 200, "1; 0 0; 0 up:1"},
		{"down:1, up:1", nil, 0, 200, "2; 0 0; 0 up:1"},
		{"gone:1,down:1,gone:2,up:1", nil, 0, 200, "2; 0 0; 0 up:1"},
		{"down:1,down:2", nil, 0, 503, "2; 0 32; 0 down:2"},
		{"down:1,down:2,down:3,up:1", nil, 0, 503, "3; 0 32; 0 down:3"},
		{"down:1,up:1", nil, 1, 503, "1; 0 32; 0 down:1"},
		{"gone:1", nil, 0, 503, "; 0 2; 1"},
		{"busy:1,up:1", nil, 0, 503, "1; 0 0; 0 busy:1"},
		{"busy:1,up:1", []string{"5xx"}, 0, 200, "2; 0 0; 0 up:1"},
		{"busy:1,busy:2", []string{"gateway-error"}, 0, 503, "2; 0 32768; 0 busy:2"},
		{"busy:1", []string{"gateway-error"}, 0, 503, "1; 0 0; 0 busy:1"},
		{"broken:1,up:1", []string{"gateway-error"}, 0, 505, "1; 0 0; 0 broken:1"},
		{"broken:1,up:1", []string{"5xx"}, 0, 200, "2; 0 0; 0 up:1"},
		{"reset:1,up:1", nil, 0, 503, "1; 0 64; 0 reset:1"},
		{"reset:1,up:1", []string{"reset"}, 0, 200, "2; 0 0; 0 up:1"},
	} {
		h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: telling + "request_headers replace 0 x-target " + strings.ReplaceAll(tt.list, " ", "%")})
		got := h.Do(0, hosttest.Request{Target: "x-target", RetryOn: tt.retryOn, Attempts: tt.attempts, Replicas: map[string]hosttest.Response{
			"up:1": up, "down:1": down, "down:2": down, "down:3": down, "busy:1": busy, "busy:2": busy, "reset:1": reset, "broken:1": {Status: 505}}})
		said := strings.Split(heard(h), "; ")
		i := 0
		for said[i] != "log" {
			i++
		}
		if told := fmt.Sprintf("%s; %s; %s", got.Response.Value("x-envoy-attempt-count"), said[i+2], said[i+3]); told != tt.want || got.Status != tt.status {
			t.Errorf("%s on %v: %d, %s, want %d, %s", tt.list, tt.retryOn, got.Status, told, tt.status, tt.want)
		}
	}
}

// While an answer takes its time, ticks run, and one of them may answer the client.
func TestSlowUpstream(t *testing.T) {
	h := hosttest.New(t, hosttest.Options{Wasm: probe, Config: "configure tickevery 1000\ntick effective 2\ntick reply 504 slow"})
	got := h.Do(0, hosttest.Request{Response: hosttest.Response{After: 1500 * time.Millisecond, Body: "late"}})
	if got.Local == nil || got.Status != 504 || got.ResponseBody != "slow" || got.Hangs || got.Err != nil {
		t.Errorf("%+v", got)
	}
	if after := h.Now().Sub(hostsim.VirtualEpoch); after != 1500*time.Millisecond {
		t.Errorf("took %v", after)
	}
}

// What is said of faults in a test's own words: a worker's crash in one line, and what each failure policy makes of it.
func TestCrashAndPolicies(t *testing.T) {
	for policy, later := range map[hostsim.FailurePolicy]int{hostsim.FailClosed: 503, hostsim.FailOpen: 200, hostsim.FailReload: 200} {
		h := hosttest.New(t, hosttest.Options{Wasm: probe, AllowTraps: true, Adjust: func(c *hostsim.Config) {
			c.FailurePolicy = policy
			c.Faults = []hostsim.Fault{{At: "proxy_on_request_headers", Nth: 1, Trap: true}}
		}})
		first := h.Do(0, hosttest.Request{})
		h.Advance(hostsim.DefaultReloadBackoff)
		if second := h.Do(0, hosttest.Request{}); first.Status != 503 || first.Err == nil || second.Status != later || second.Err != nil {
			t.Errorf("policy %d: %+v, then %+v", policy, first, second)
		}
	}
}
