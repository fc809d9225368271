package hostsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// Streams of four workers, answers to HTTP and gRPC calls from other goroutines, queues, connections, ticks, a crash with
// FailReload and new configurations, all at once and recorded: every stream ends, and the recording replays.
func TestEverythingAtOnceIsRecorded(t *testing.T) {
	const workers, rounds = 4, 8
	var answering sync.WaitGroup
	later := func(f func()) { answering.Go(f) }
	var out bytes.Buffer
	script := `
		configure qregister q
		configure tickevery 10
		configure mdef 1 hits
		tick sdinc ticks
		new_connection log 2 conn
		queue_ready dequeue 1
		request_headers sdinc count
		request_headers enqueue 1 hello
		request_headers httpcall admin 1000 ~ :method=GET :path=/ :authority=a
		request_headers grpcstream grpc s.S m
		request_headers nth 7 panic boom
		http_call_response get 6 :status
		http_call_response enqueue 1 more
		grpc_receive buf 5 0 10
		grpc_close status
		response_headers add 2 x-a b`
	h, err := New(context.Background(), Config{
		Wasm: guest(t, "probe"), PluginConfig: []byte(script), Workers: workers, FailurePolicy: FailReload, ReloadBackoff: time.Millisecond,
		Recorder: NewRecorder(&out, RecordOptions{}), LogLevel: LogError, Clock: NewRealClock(),
		HTTPCall: func(c *HTTPCall) bool {
			later(func() { c.Respond(HTTPResponse{Headers: Headers{{":status", "200"}}, Body: []byte("x")}) })
			return true
		},
		GRPCCall: func(c *GRPCCall) bool {
			later(func() {
				c.Respond(GRPCResponse{Messages: [][]byte{[]byte("a")}, Open: true})
				c.Respond(GRPCResponse{Messages: [][]byte{[]byte("b")}})
			})
			return true
		},
	})
	ok(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var running, ticking sync.WaitGroup
	ticking.Go(func() { _ = h.RunTicks(ctx) })
	for i := range workers {
		running.Go(func() {
			w := h.Worker(i)
			for range rounds {
				s := w.NewStream()
				wake := s.Wake()
				step, err := s.RequestHeaders(get, false)
				if err != nil && !errors.Is(err, ErrTrap) {
					t.Errorf("worker %d: %v", i, err)
				}
				if step.Flow == Forward {
					_, _ = s.RequestBody([]byte("body"), true)
					_, _ = s.ResponseHeaders(Headers{{":status", "200"}}, true)
				}
				select {
				case <-wake:
					s.RequestReady()
				default:
				}
				c := w.NewConnection()
				_, _ = c.Open()
				_, _ = c.DownstreamData([]byte("data"), false)
				_ = c.Close(CloseRemote)
				_ = s.End(EndNormal)
			}
		})
	}
	for i := range 3 {
		if err := h.Reconfigure(fmt.Appendf(nil, "%s\nlog log 2 generation%d", script, i)); err != nil && !errors.Is(err, ErrTrap) {
			t.Error(err)
		}
		h.Drain()
		_, _ = h.Metrics(), h.Counters()
		_, _ = h.Logs(), h.Coverage()
	}
	running.Wait()
	stop()
	ticking.Wait()
	for i := range workers {
		if n := h.Worker(i).OpenStreams(); n != 0 {
			t.Errorf("worker %d: %d open", i, n)
		}
	}
	_ = h.Shutdown()
	ok(t, h.Close())
	answering.Wait()
	replayed(t, guest(t, "probe"), &out)
}
