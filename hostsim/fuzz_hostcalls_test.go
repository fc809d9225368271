package hostsim

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
	"time"
)

// FuzzHostCalls has a module make the host calls that the input spells, with the arguments that it spells, in the
// callbacks that it spells. Whatever they are, the host neither panics nor hangs, a host function never fails by itself,
// and if the virtual machine lives, the next stream passes.
func FuzzHostCalls(f *testing.F) {
	for number := range uint32(len(scriptFuncs()) + 1) {
		for _, phase := range []byte{0, 1, 3, 6, 12, 13} {
			f.Add([]byte{phase, 0, 1, byte(number), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, phase + 1, 1, 1, byte(number), 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9})
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		begun := time.Now()
		p := newScriptHost(t)
		s := &scriptRun{input: input, host: p}
		s.play(t)
		if took := time.Since(begun); took > 10*time.Second {
			t.Fatalf("took %v", took)
		}
		s.passOn(t)
	})
}

func newScriptHost(t testing.TB) *Host {
	t.Helper()
	calls := 0 // bounded: a module that calls again at each answer would go on for ever
	h, err := New(context.Background(), Config{
		Wasm: scriptGuest(), Profile: Permissive(), PluginConfig: []byte("plugin configuration"), VMConfig: []byte("vm"),
		Properties: map[string][]byte{"a.b": []byte("property")}, LogLimit: 10, Env: map[string]string{"NAME": "value"},
		HTTPCall: func(c *HTTPCall) bool {
			if calls++; calls > 20 {
				return false
			}
			if len(c.Body)%2 == 0 {
				c.Respond(HTTPResponse{Headers: reply, Body: []byte("body"), Trailers: Headers{{"a", "b"}}, After: time.Millisecond})
			}
			return true
		},
		GRPCCall: func(c *GRPCCall) bool {
			if calls++; calls > 20 {
				return false
			}
			c.Respond(GRPCResponse{Messages: [][]byte{[]byte("message")}, Open: c.Stream && len(c.Metadata) > 0, Trailers: Headers{{"a", "b"}}})
			return true
		},
	})
	ok(t, err)
	t.Cleanup(func() { ok(t, h.Close()) })
	h.SharedData().Set("key", []byte("value"), 0)
	for i, text := range scriptTexts {
		h.workers[0].vm.mem.WriteString(scriptFree+uint32(64*i), text)
	}
	return h
}

// scriptTexts are in the script guest's free memory, 64 bytes apart.
var scriptTexts = []string{"key", ":path", "a\x00b", "request\x00path", "uncompress", "cluster", "service", "method",
	string(encodePairs(Headers{{":method", "GET"}, {":path", "/"}, {":authority", "a"}}))}

// scriptRun plays an input.
type scriptRun struct {
	input  []byte
	host   *Host
	stream *Stream
}

// next takes a byte, 0 at the end.
func (s *scriptRun) next() byte {
	if len(s.input) == 0 {
		return 0
	}
	b := s.input[0]
	s.input = s.input[1:]
	return b
}

// play takes one phase after the other, 30 at most.
func (s *scriptRun) play(t *testing.T) {
	s.stream = s.host.Worker(0).NewStream()
	for n := 0; len(s.input) > 0 && n < 30; n++ {
		phase, answer, count := s.next(), s.next(), s.next()
		if phase&0x80 != 0 {
			s.host.mallocs(0, s.argument(), s.calls(int(count>>4)))
		}
		s.host.script(0, uint32(answer), s.calls(int(count&15)))
		checkHost(t, s.phase(phase&0x7f, answer&0x80 != 0))
	}
	s.host.script(0, 0, nil)
	checkHost(t, s.stream.End(EndNormal))
}

func (s *scriptRun) phase(phase byte, end bool) (err error) {
	st := s.stream
	switch phase % 15 {
	case 0:
		_, err = st.RequestHeaders(get, end)
	case 1:
		_, err = st.RequestBody([]byte("request body"), end)
	case 2:
		_, err = st.RequestTrailers(Headers{{"trailer", "1"}})
	case 3:
		_, err = st.ResponseHeaders(reply, end)
	case 4:
		_, err = st.ResponseBody([]byte("response body"), end)
	case 5:
		_, err = st.ResponseTrailers(Headers{{"trailer", "2"}})
	case 6:
		err = st.End(EndReason(phase % 4))
		s.stream = s.host.Worker(0).NewStream()
	case 7:
		s.host.Advance(time.Duration(phase) * time.Millisecond)
	case 8:
		s.host.script(0, 1, nil)
		err = s.host.Reconfigure([]byte("another"))
		s.host.Drain()
	case 9:
		st.RequestReady()
		st.ResponseReady()
		st.LocalReply()
	case 10:
		err = errors.Join(s.host.Worker(0).NewStream().End(EndClientGone), st.End(EndTimeout))
		s.stream = s.host.Worker(0).NewStream()
	case 11:
		_, err = st.RequestHeaders(get, true)
		_, other := st.ResponseHeaders(reply, true)
		err = errors.Join(err, other)
	case 12:
		err = s.connection(end)
	case 13:
		err = s.host.Worker(0).CallForeignFunction(uint32(phase), []byte("argument"))
	case 14:
		s.host.Advance(time.Second)
	}
	return err
}

func (s *scriptRun) connection(end bool) error {
	c := s.host.Worker(0).NewConnection()
	_, opened := c.Open()
	_, down := c.DownstreamData([]byte("from the client"), end)
	_, up := c.UpstreamData([]byte("from upstream"), end)
	c.Ready()
	return errors.Join(opened, down, up, c.Close(CloseType(s.next()%3)))
}

func (s *scriptRun) calls(n int) (calls []scriptCall) {
	for range min(n, 60) {
		number := 1 + uint32(s.next())%uint32(len(scriptFuncs())+1)
		c := scriptCall{number: number}
		if int(number) <= len(scriptFuncs()) {
			params, _ := scriptFuncs()[number-1].signature()
			for range params {
				c.args = append(c.args, uint64(s.argument()))
			}
		}
		calls = append(calls, c)
	}
	return calls
}

// interesting are arguments that mean something to some function.
var interesting = []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 64, 1024, 0xffff, 0x10000, 0x100000, 1 << 20, 1 << 31, 1<<31 - 1, 0xffffffff,
	0xfffffff8, scriptFree, scriptFree + 64, scriptMalloc, scriptAnswer, callScript, mallocScript, 65530, 65536 - 4,
	9, 10, 14, 49, scriptFree + 64*2, scriptFree + 64*3, scriptFree + 64*4, scriptFree + 64*5, scriptFree + 64*6, scriptFree + 64*7, scriptFree + 64*8}

func (s *scriptRun) argument() uint32 {
	b := s.next()
	switch {
	case b < 160:
		return interesting[int(b)%len(interesting)]
	case b < 200:
		return scriptFree + 16*uint32(b) // free of anything
	case b < 240:
		return uint32(s.next())
	}
	return binary.LittleEndian.Uint32([]byte{s.next(), s.next(), s.next(), s.next()})
}

// checkHost fails for an error that is not the module's own doing.
func checkHost(t *testing.T, err error) {
	t.Helper()
	var broken runtime.Error
	switch {
	case err == nil, errors.Is(err, ErrOrder), errors.Is(err, ErrStreamEnded), errors.Is(err, ErrRefused):
	case errors.As(err, &broken) || !errors.Is(err, ErrTrap):
		t.Fatal(err)
	}
}

// passOn takes a plain stream through a virtual machine that lives.
func (s *scriptRun) passOn(t *testing.T) {
	s.host.script(0, 0, nil)
	checkHost(t, s.host.Main().Err())
	if err := s.host.Worker(0).Err(); err != nil {
		checkHost(t, err)
		return
	}
	st := s.host.Worker(0).NewStream()
	step, err := st.RequestHeaders(get, true)
	if err != nil || step.Flow != Forward || !step.Headers || !step.End {
		t.Fatalf("request: %+v, %v", step, err)
	}
	step, err = st.ResponseHeaders(reply, true)
	if err != nil || step.Flow != Forward || !step.Headers || !step.End {
		t.Fatalf("response: %+v, %v", step, err)
	}
	ok(t, st.End(EndNormal))
}
