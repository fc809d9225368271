package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

const three = "10.0.0.1:8000,10.0.0.2:8000,10.0.0.3:8000"

// serve runs the program with those flags until the test ends, and returns a client of the generated types.
func serve(t *testing.T, flags ...string) extproc.ExternalProcessorClient {
	t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"--replicas", three}, flags...), w, io.Discard)
		w.CloseWithError(err)
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(strings.TrimSpace(line), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return extproc.NewExternalProcessorClient(conn)
}

// headers is Envoy's message about a request with these headers, names and values in turn.
func headers(pairs ...string) *extproc.ProcessingRequest {
	list := []*core.HeaderValue{}
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, &core.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return &extproc.ProcessingRequest{
		ProtocolConfig: &extproc.ProtocolConfiguration{},
		Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{
			EndOfStream: true, Headers: &core.HeaderMap{Headers: list},
		}},
	}
}

func turn(id string) *extproc.ProcessingRequest { return headers("x-session-id", id) }

// ask sends the messages on one stream and returns the targets.
func ask(t *testing.T, client extproc.ExternalProcessorClient, messages ...*extproc.ProcessingRequest) (targets []string) {
	t.Helper()
	stream, err := client.Process(t.Context())
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, m := range messages {
		if err := stream.Send(m); err != nil {
			t.Error(err)
			return nil
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Error(err)
			return nil
		}
		set := answer.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders()
		if len(set) != 1 || set[0].Header.Key != target || set[0].AppendAction != core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD {
			t.Errorf("answer %v", answer)
			return nil
		}
		targets = append(targets, string(set[0].Header.RawValue))
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	if m, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end %v, %v", m, err)
	}
	return targets
}

// The sessions and their replicas are those of examples/quickstart, which hold for the plugin.
func TestPinsAsThePluginDoes(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "unix:" + filepath.Join(t.TempDir(), "s")} {
		client := serve(t, "--listen", listen)
		for range 2 {
			for _, c := range [][2]string{{"planner", "10.0.0.2:8000,"}, {"coder", "10.0.0.3:8000,"}, {"tester", "10.0.0.1:8000,"}} {
				got := ask(t, client, headers(":path", "/", "x-session-id", c[0], "x-session-id", "other"))
				if len(got) != 1 || !strings.HasPrefix(got[0], c[1]) {
					t.Errorf("%s: %s goes to %q, want %s...", listen, c[0], got, c[1])
					continue
				}
				all := strings.Split(got[0], ",")
				if slices.Sort(all); strings.Join(all, ",") != three {
					t.Errorf("%s: target %q does not name each replica once", listen, got[0])
				}
			}
		}
	}
}

func TestSpreadsNewSessions(t *testing.T) {
	client := serve(t)
	var (
		mu    sync.Mutex
		count = map[string]int{}
		all   sync.WaitGroup
	)
	for i := range 60 {
		all.Go(func() {
			got := ask(t, client, turn(fmt.Sprint("s", i)))
			mu.Lock()
			defer mu.Unlock()
			primary, _, _ := strings.Cut(strings.Join(got, ""), ",")
			count[primary]++
		})
	}
	all.Wait()
	for _, r := range strings.Split(three, ",") {
		if count[r] != 20 {
			t.Errorf("60 sessions: %v", count)
		}
	}
}

// Requests without a session, or with one that is not kept, take turns.
func TestWithoutAPin(t *testing.T) {
	long := strings.Repeat("x", maxIDBytes+1)
	client := serve(t, "--max-sessions", "1")
	ask(t, client, turn("s"))
	for name, m := range map[string]*extproc.ProcessingRequest{
		"no header":    headers(":path", "/"),
		"no headers":   {Request: &extproc.ProcessingRequest_RequestHeaders{}},
		"empty id":     turn(""),
		"long id":      turn(long),
		"a full table": turn("another"),
	} {
		got := ask(t, client, m, m, m, m)
		// One replica has a session: the others come first.
		if len(got) != 4 || got[0] == got[1] || got[0] != got[2] || got[1] != got[3] {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := ask(t, serve(t), turn(long[1:]), turn(long[1:])); len(got) != 2 || got[0] != got[1] {
		t.Errorf("the longest id that is kept: %q", got)
	}
}

func TestAnotherHeader(t *testing.T) {
	client := serve(t, "--header", "x-other")
	m := headers("x-session-id", "s", "x-other", "t")
	m.GetRequestHeaders().Headers.Headers[1] = &core.HeaderValue{Key: "x-other", Value: "t"}
	if got := ask(t, client, m, headers("x-session-id", "u", "x-other", "t")); len(got) != 2 || got[0] != got[1] {
		t.Errorf("%q", got)
	}
}

func TestOtherMessagesAreRefused(t *testing.T) {
	client := serve(t)
	for _, m := range []*extproc.ProcessingRequest{
		{},
		{Request: &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extproc.HttpHeaders{}}},
		{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: &extproc.HttpBody{Body: []byte("x"), EndOfStream: true}}},
		{Request: &extproc.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extproc.HttpTrailers{}}},
	} {
		stream, err := client.Process(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
		if got, err := stream.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	ask(t, client, turn("s")) // the picker is well
}

// Whatever bytes come, the server stays.
func TestMalformedMessages(t *testing.T) {
	c := codec{header: "x-session-id"}
	good, err := encoding.GetCodecV2("proto").Marshal(turn("session"))
	if err != nil {
		t.Fatal(err)
	}
	whole := good.Materialize()
	var q question
	if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(whole)}, &q); err != nil || !q.headers || string(q.session) != "session" {
		t.Errorf("%v, %v %q", err, q.headers, q.session)
	}
	refused := 0
	for n := range whole {
		if err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(whole[:n])}, &q); err != nil {
			refused++
		}
		for _, flip := range []byte{1, 0x80, 0xff} {
			other := bytes.Clone(whole)
			other[n] ^= flip
			_ = c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(other)}, &q) // must not panic
		}
	}
	if refused == 0 {
		t.Error("no part of a message was refused")
	}
	if c.Unmarshal(good, new(int)) == nil {
		t.Error("read into an int")
	}
	if _, err := c.Marshal(1); err == nil {
		t.Error("wrote an int")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	p, err := newPicker(strings.Split(three, ","), "x-session-id", 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range mostAnswers {
		p.answers[fmt.Sprint(i)] = nil
	}
	p.pick([]byte("s"))
	if len(p.answers) != 1 {
		t.Errorf("%d answers kept", len(p.answers))
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		want error
		text string
	}{
		{[]string{"--help"}, flag.ErrHelp, "-replicas"},
		{nil, errUsage, "-replicas"},
		{[]string{"--replicas", three, "more"}, errUsage, "-replicas"},
		{[]string{"--replicas", three, "--max-sessions", "0"}, errUsage, "-replicas"},
		{[]string{"--nonsense"}, errUsage, "nonsense"},
		{[]string{"--replicas", "localhost"}, nil, "localhost"},
		{[]string{"--replicas", "10.0.0.1:1,10.0.0.1:1"}, nil, "twice"},
		{[]string{"--replicas", three, "--listen", "nowhere"}, nil, "nowhere"},
	} {
		var help bytes.Buffer
		err := run(t.Context(), c.args, io.Discard, &help)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error()+help.String(), c.text) {
			t.Errorf("%q: %v, %s", c.args, err, help.String())
		}
	}
}
