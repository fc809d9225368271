package hostsim

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// newCode is the probe's module with other bytes: a custom section at its end.
func newCode(t testing.TB) []byte {
	t.Helper()
	return slices.Concat(guest(t, "probe"), section0("update"))
}

func section0(name string) []byte {
	content := append(text(name), 0)
	return append(append([]byte{0}, uleb(len(content))...), content...)
}

// New code stands beside the old: old streams stay with the old machine, new ones go to the new, both tick, and Drain ends
// the old one when its last stream has gone.
func TestUpdateWithNewCode(t *testing.T) {
	p := newFree(t, "configure tickevery 1000\nconfigure sdset key old 0\nrequest_headers log 2 old\nlog log 2 old", func(c *Config) { c.LogLevel = LogDebug })
	old := p.Worker(0).NewStream()
	_, err := old.RequestHeaders(get, true)
	ok(t, err)
	starts := p.Counters().Callbacks["_initialize"]
	_, cas, _ := p.SharedData().Get("key")
	p.heard()
	ok(t, p.Update(context.Background(), Update{Wasm: newCode(t), PluginConfig: []byte("configure tickevery 1000\nrequest_headers log 2 new\nrequest_headers sdget key")}))
	p.expect(`
		> context_create 1 0
		> vm_start 1 0
		> configure 1 76
		tickevery 1000 = 0`)
	if n := p.Counters().Callbacks["_initialize"] - starts; n != 3 { // canary, main, worker
		t.Errorf("%d new instances, want 3", n)
	}
	if _, now, _ := p.SharedData().Get("key"); now != cas {
		t.Errorf("shared data has been written: cas %d, was %d", now, cas)
	}
	p.pass()
	p.results("new\nlog 2 new = 0\nsdget key = 0 old")
	_, err = old.ResponseHeaders(reply, false)
	ok(t, err)
	p.expect("> response_headers 2 1 0")
	p.Advance(time.Second)
	p.expect("> tick 1\n> tick 1") // the old and the new
	p.Drain()
	p.Advance(time.Second)
	p.expect("> tick 1\n> tick 1") // the old one has a stream
	before := p.program.Load()
	oldVM := p.Worker(0).old[0]
	ok(t, old.End(EndNormal))
	p.expect("> log 2\nold\nlog 2 old = 0\n> done 2\n> delete 2\n> done 1\n> delete 1")
	if oldVM.mod != nil || len(p.Worker(0).old) != 0 || !oldVM.program.closed || oldVM.program.machines != 0 || before.machines != 2 {
		t.Errorf("the old machine is still there: %d machines of its program", oldVM.program.machines)
	}
	p.Advance(time.Second)
	p.expect("> tick 1")
	if n := p.Counters().Callbacks["proxy_on_request_headers"]; n != 2 {
		t.Errorf("%d requests counted, want both", n)
	}
}

// The canary alone sees code or a configuration that is refused.
func TestUpdateRefused(t *testing.T) {
	p := newFree(t, "request_headers log 2 old")
	starts := p.Counters().Callbacks["_initialize"]
	for _, c := range []struct {
		update Update
		want   error
		starts uint64
	}{
		{Update{Wasm: []byte("no module")}, ErrABI, 0},
		{Update{Wasm: (&wasmModule{}).bytes()}, ErrABI, 0},
		{Update{Wasm: newCode(t), PluginConfig: []byte("configure return 0")}, ErrRefused, 1},
		{Update{Wasm: newCode(t), PluginConfig: []byte("configure panic boom")}, ErrTrap, 1},
		{Update{VMConfig: []byte("refuse")}, ErrRefused, 1},
	} {
		if err := p.Update(context.Background(), c.update); !errors.Is(err, c.want) {
			t.Errorf("err %v, want %v", err, c.want)
		}
		if n := p.Counters().Callbacks["_initialize"] - starts; n != c.starts {
			t.Errorf("%v: %d instances, want %d", c.want, n, c.starts)
		}
		starts = p.Counters().Callbacks["_initialize"]
		p.expect("")
		p.pass()
		p.results("old\nlog 2 old = 0")
	}
}

// A recording is of one module.
func TestUpdateOfARecordedHost(t *testing.T) {
	p := newProbe(t, "")
	if err := p.Update(context.Background(), Update{Wasm: newCode(t)}); !errors.Is(err, ErrConfig) {
		t.Errorf("err %v", err)
	}
	ok(t, p.Update(context.Background(), Update{PluginConfig: []byte("log loglevel")}))
}

// What does not change code or VM configuration keeps the machines; a new VM configuration does not.
func TestUpdateOfConfigurations(t *testing.T) {
	p := newFree(t, "request_headers log 2 old")
	for _, c := range []struct {
		update Update
		starts uint64
	}{
		{Update{PluginConfig: []byte("request_headers log 2 new")}, 1},
		{Update{Wasm: bytes.Clone(guest(t, "probe")), PluginConfig: []byte("request_headers log 2 new")}, 1},
		{Update{VMConfig: []byte("other"), PluginConfig: []byte("request_headers log 2 new")}, 3},
		{Update{VMConfig: []byte("other"), PluginConfig: []byte("request_headers log 2 new")}, 1},
		{Update{VMConfig: []byte{}, PluginConfig: []byte("request_headers log 2 new")}, 3},
	} {
		before := p.Counters().Callbacks["_initialize"]
		ok(t, p.Update(context.Background(), c.update))
		if n := p.Counters().Callbacks["_initialize"] - before; n != c.starts {
			t.Errorf("%q: %d instances, want %d", c.update.VMConfig, n, c.starts)
		}
		p.heard()
		p.pass()
		p.results("new\nlog 2 new = 0")
	}
	p.Drain()
	if n := len(p.Worker(0).old) + len(p.Main().old); n != 0 {
		t.Errorf("%d old machines after the drain", n)
	}
}

// A machine that crashes while it drains takes its own streams with it and nobody else's; a worker that had crashed
// before the update serves again.
func TestUpdateAndCrashes(t *testing.T) {
	p := newFree(t, "request_headers return 0\nresponse_headers panic boom", func(c *Config) { c.Workers = 2 })
	dead, old := p.Worker(0).NewStream(), p.Worker(1).NewStream()
	for _, s := range []*Stream{dead, old} {
		_, err := s.RequestHeaders(get, true)
		ok(t, err)
	}
	if _, err := dead.ResponseHeaders(reply, true); !errors.Is(err, ErrTrap) {
		t.Fatalf("err %v", err)
	}
	ok(t, p.Update(context.Background(), Update{Wasm: newCode(t), PluginConfig: []byte("request_headers log 2 new")}))
	for i := range 2 {
		if err := p.Worker(i).Err(); err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
	p.heard()
	if _, err := old.ResponseHeaders(reply, true); !errors.Is(err, ErrTrap) {
		t.Errorf("old stream: %v", err)
	}
	ok(t, old.End(EndNormal))
	ok(t, dead.End(EndNormal))
	if err := p.Worker(1).Err(); err != nil || len(p.Worker(1).old) != 0 || p.Worker(1).OpenStreams() != 0 {
		t.Errorf("worker 1: err %v, %d old machines", err, len(p.Worker(1).old))
	}
	p.heard()
	p.pass()
	p.results("new\nlog 2 new = 0")
}

// The answer to a call-out that old code has made reaches old code.
func TestUpdateKeepsCallouts(t *testing.T) {
	var call *HTTPCall
	p := newFree(t, "request_headers httpcall up 0 ~ :method=GET :path=/ :authority=a\nhttp_call_response log 2 old", func(c *Config) {
		c.HTTPCall = func(c *HTTPCall) bool { call = c; return true }
	})
	p.pass()
	ok(t, p.Update(context.Background(), Update{Wasm: newCode(t), PluginConfig: []byte("http_call_response log 2 new")}))
	p.heard()
	call.Respond(HTTPResponse{Headers: reply})
	p.Advance(0)
	p.results("old\nlog 2 old = 0")
}
