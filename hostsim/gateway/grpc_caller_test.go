package gateway

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// grpcServer answers each message of a request by itself in upper case, and does as the method says.
func grpcServer(t *testing.T) string {
	return http2Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Te") != "trailers" {
			t.Errorf("%s with headers %v", r.URL.Path, r.Header)
		}
		w.Header().Set("Content-Type", "application/grpc")
		switch r.URL.Path {
		case "/s.S/Refuse":
			w.Header().Set("Grpc-Status", "7")
			w.Header().Set("Grpc-Message", "no")
			return
		case "/s.S/Missing":
			w.WriteHeader(404)
			return
		case "/s.S/Squeeze":
			_, _ = w.Write([]byte{1, 0, 0, 0, 0})
			return
		case "/s.S/Huge":
			_, _ = w.Write([]byte{0, 255, 255, 255, 255})
			return
		}
		w.(http.Flusher).Flush()
		for {
			message, err := readFrame(r.Body)
			if err != nil {
				break
			}
			text := strings.ToUpper(string(message) + r.Header.Get("x-more"))
			_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...))
			w.(http.Flusher).Flush()
			if r.URL.Path == "/s.S/Cut" {
				panic(http.ErrAbortHandler)
			}
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})
}

// buildProbe compiles the guest that does what its configuration says.
func buildProbe(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "probe.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "../testdata/guests/probe")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// The plugin's own gRPC calls and streams go to the clusters, and it hears what a gRPC server answers.
func TestPluginCallsGRPC(t *testing.T) {
	caller, err := NewCaller([]Cluster{
		{Name: "grpc", Hosts: []string{closedPort(t), grpcServer(t)}},
		{Name: "closed", Hosts: []string{closedPort(t)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	wasm := buildProbe(t)
	for name, tt := range map[string]struct{ script, until, want string }{
		"unary": {"grpccall grpc s.S Echo hello 10000 x-more=!", "buf 5", "buf 5 0 100 = 0 HELLO!"},
		"stream": {"grpcstream grpc s.S Echo\nrequest_headers grpcsend 6 one 0\nrequest_headers grpcsend 6 two 1", "status",
			"buf 5 0 100 = 0 ONE; buf 5 0 100 = 0 TWO; pairs 5 = 0 grpc-status=0; status = 0 0 via_upstream"},
		"closed by the plugin": {"grpcstream grpc s.S Echo\nrequest_headers grpcsend 6 one 0\nrequest_headers grpcclose 6", "status",
			"buf 5 0 100 = 0 ONE; pairs 5 = 0 grpc-status=0; status = 0 0 via_upstream"},
		"refused":        {"grpccall grpc s.S Refuse x 10000", "status", "status = 0 7 no{via_upstream}"},
		"no such method": {"grpccall grpc s.S Missing x 10000", "status", "status = 0 12 upstream answered 404 Not Found{via_upstream}"},
		"compressed":     {"grpccall grpc s.S Squeeze x 10000", "status", "status = 0 13 not a gRPC message: compression flag 1, 0 bytes (0 and up to 33554432 are taken){via_upstream}"},
		"too large":      {"grpccall grpc s.S Huge x 10000", "status", "status = 0 13 not a gRPC message: compression flag 0, 4294967295 bytes (0 and up to 33554432 are taken){via_upstream}"},
		"cut": {"grpcstream grpc s.S Cut\nrequest_headers grpcsend 6 one 1", "status",
			"buf 5 0 100 = 0 ONE; pairs 5 = 0; status = 0 13 upstream_reset_after_response_started{remote_reset}"},
		"nobody there": {"grpccall closed s.S Echo x 10000", "status", "status = 0 14 upstream connection failure{via_upstream}"},
	} {
		heard := make(chan string, 100)
		h, err := hostsim.New(context.Background(), hostsim.Config{Wasm: wasm, GRPCCall: caller.GRPC, Clock: hostsim.NewRealClock(),
			PluginConfig: []byte("request_headers " + tt.script + "\ngrpc_receive buf 5 0 100\ngrpc_receive_trailing_metadata pairs 5\ngrpc_close status"),
			Log: func(e hostsim.LogEntry) {
				if e.Worker == 0 && e.Level == hostsim.LogInfo && !strings.HasPrefix(e.Message, "grpc") {
					heard <- e.Message
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ticks := make(chan error, 1)
		go func() { ticks <- h.RunTicks(ctx) }()
		s := h.Worker(0).NewStream()
		if _, err := s.RequestHeaders(hostsim.Headers{{":method", "GET"}, {":path", "/"}}, true); err != nil {
			t.Fatal(err)
		}
		var got []string
		for got == nil || !strings.HasPrefix(got[len(got)-1], tt.until) {
			got = append(got, <-heard)
		}
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("%s: heard %s\nwant %s", name, text, tt.want)
		}
		stop()
		<-ticks
		_ = s.End(hostsim.EndNormal)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A call that the plugin throws away ends upstream too.
func TestCancelledGRPCCallEnds(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	server := http2Backend(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		close(gone)
	})
	caller, err := NewCaller([]Cluster{{Name: "grpc", Hosts: []string{server}}})
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	h, err := hostsim.New(context.Background(), hostsim.Config{Wasm: buildProbe(t), Clock: hostsim.NewRealClock(),
		PluginConfig: []byte("request_headers grpcstream grpc s.S m\nresponse_headers grpccancel 6"),
		GRPCCall:     caller.GRPC})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s := h.Worker(0).NewStream()
	_, _ = s.RequestHeaders(hostsim.Headers{{":method", "GET"}, {":path", "/"}}, true)
	<-arrived
	_, _ = s.ResponseHeaders(hostsim.Headers{{":status", "200"}}, true)
	<-gone
}
