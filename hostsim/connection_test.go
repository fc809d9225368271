package hostsim

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// link is a connection under test.
type link struct {
	*Connection
	t testing.TB
}

func (p *probe) open(want ConnectionStep) link {
	p.t.Helper()
	c := link{p.Worker(0).NewConnection(), p.t}
	step, err := c.Open()
	c.check(step, err, want)
	return c
}

func (c link) check(got ConnectionStep, err error, want ConnectionStep) {
	c.t.Helper()
	ok(c.t, err)
	if got.Flow != want.Flow || got.Connect != want.Connect || got.End != want.End || !bytes.Equal(got.Data, want.Data) {
		c.t.Errorf("step %v %+v, want %v %+v", got.Flow, got, want.Flow, want)
	}
}

func (c link) client(data string, end bool, want ConnectionStep) {
	c.t.Helper()
	step, err := c.DownstreamData([]byte(data), end)
	c.check(step, err, want)
}

func (c link) server(data string, end bool, want ConnectionStep) {
	c.t.Helper()
	step, err := c.UpstreamData([]byte(data), end)
	c.check(step, err, want)
}

// A whole connection. Order and arguments here and below as seen on Envoy 1.40.0 with a TCP proxy behind the plugin.
func TestConnection(t *testing.T) {
	p := newProbe(t, `
		downstream_data buf 2 0 99
		downstream_data bufset 2 99 0 !
		downstream_data buf 3 0 99
		downstream_data buf 0 0 99
		downstream_data pairs 0
		downstream_data get 0 x
		downstream_data continue 0
		downstream_data continue 3
		downstream_data reply 200 x
		upstream_data buf 3 0 99
		upstream_data bufset 3 0 2 no
		upstream_data buf 2 0 99
		upstream_data bufset 2 0 0 x
		upstream_connection_close buf 3 0 9
		log buf 2 0 9
		log get 0 a`)
	c := p.open(ConnectionStep{Connect: true})
	c.client("ping", false, ConnectionStep{Data: []byte("ping!")})
	c.server("oui", true, ConnectionStep{Data: []byte("noi"), End: true})
	c.client("", true, ConnectionStep{Data: []byte("!"), End: true})
	ok(t, c.Close(CloseRemote))
	ok(t, c.Close(CloseLocal))
	p.expect(`> context_create 2 1
		> new_connection 2
		> downstream_data 2 4 0
		buf 2 0 99 = 0 ping
		bufset 2 99 0 ! = 0
		buf 3 0 99 = 0
		buf 0 0 99 = 0
		pairs 0 = 0
		get 0 x = 2
		continue 0 = 0
		continue 3 = 12
		reply 200 x = 0
		> upstream_data 2 3 1
		buf 3 0 99 = 0 oui
		bufset 3 0 2 no = 0
		buf 2 0 99 = 0
		bufset 2 0 0 x = 2
		> upstream_connection_close 2 0
		buf 3 0 9 = 0
		> downstream_data 2 0 1
		buf 2 0 99 = 0
		bufset 2 99 0 ! = 0
		buf 3 0 99 = 0
		buf 0 0 99 = 0
		pairs 0 = 0
		get 0 x = 2
		continue 0 = 0
		continue 3 = 12
		reply 200 x = 0
		> downstream_connection_close 2 2
		> done 2
		> log 2
		buf 2 0 9 = 0
		get 0 a = 2
		> delete 2`)
	if p.Worker(0).OpenStreams() != 0 || c.ID() != 2 {
		t.Errorf("%d open, id %d", p.Worker(0).OpenStreams(), c.ID())
	}
}

// A plugin that stops sees the bytes again, in front of the next ones.
func TestConnectionStops(t *testing.T) {
	p := newProbe(t, `
		downstream_data when 1 return 1
		downstream_data buf 2 0 99
		downstream_data when 2 bufset 2 0 99 replaced
		downstream_data when 3 return 1
		downstream_data when 3 continue 2
		upstream_data when 1 return 1
		upstream_data when 1 continue 3
		upstream_data buf 2 0 9
		upstream_data buf 3 0 99`)
	c := p.open(ConnectionStep{Connect: true})
	c.client("one", false, ConnectionStep{Flow: Wait})
	c.server("SIX", false, ConnectionStep{Flow: Wait})
	c.client("two", false, ConnectionStep{Data: []byte("replaced")})
	c.client("five", true, ConnectionStep{Data: []byte("five"), End: true})
	c.server("", true, ConnectionStep{Data: []byte("SIX"), End: true})
	p.expect(`> context_create 2 1
		> new_connection 2
		> downstream_data 2 3 0
		buf 2 0 99 = 0 one
		> upstream_data 2 3 0
		continue 3 = 12
		buf 2 0 9 = 0 one
		buf 3 0 99 = 0 SIX
		> downstream_data 2 6 0
		buf 2 0 99 = 0 onetwo
		bufset 2 0 99 replaced = 0
		> downstream_data 2 4 1
		buf 2 0 99 = 0 five
		continue 2 = 0
		> upstream_data 2 3 1
		buf 2 0 9 = 0
		buf 3 0 99 = 0 SIX
		> upstream_connection_close 2 0`)
	if _, err := c.DownstreamData(nil, false); !errors.Is(err, ErrOrder) {
		t.Errorf("err %v after the end", err)
	}
	if _, err := c.Open(); !errors.Is(err, ErrOrder) {
		t.Errorf("err %v for a second Open", err)
	}
}

// Without an upstream connection nothing is read. A tick resumes it.
func TestConnectionHeldBackAtFirst(t *testing.T) {
	p := newProbe(t, `
		configure tickevery 100
		new_connection return 1
		downstream_data buf 2 0 99
		tick effective 2
		tick continue 2`)
	c := p.open(ConnectionStep{Flow: Wait})
	wake := c.Wake()
	c.client("early", false, ConnectionStep{Flow: Wait})
	c.client("end", true, ConnectionStep{Flow: Wait})
	p.expect("> context_create 2 1\n> new_connection 2")
	p.Advance(100 * time.Millisecond)
	p.expect(`> tick 1
		effective 2 = 0
		continue 2 = 0
		> downstream_data 2 8 1
		buf 2 0 99 = 0 earlyend`)
	<-wake
	c.check(c.Ready(), nil, ConnectionStep{Connect: true, Data: []byte("earlyend"), End: true})
	c.check(c.Ready(), nil, ConnectionStep{})
	p.Advance(100 * time.Millisecond)
	p.expect("> tick 1\neffective 2 = 0\ncontinue 2 = 0")
	c.check(c.Ready(), nil, ConnectionStep{}) // the end has gone on
}

// A client that only ends its side is told of when the connection is resumed.
func TestConnectionHeldBackWithoutData(t *testing.T) {
	p := newProbe(t, "configure tickevery 100\nnew_connection return 1\ntick effective 2\ntick continue 2")
	c := p.open(ConnectionStep{Flow: Wait})
	c.client("", true, ConnectionStep{Flow: Wait})
	p.heard()
	p.Advance(100 * time.Millisecond)
	p.expect("> tick 1\neffective 2 = 0\ncontinue 2 = 0\n> downstream_data 2 0 1")
	c.check(c.Ready(), nil, ConnectionStep{Connect: true, End: true})
}

// close_stream closes the client's connection, whichever side it names, at once after the callback.
func TestConnectionClosedByThePlugin(t *testing.T) {
	for _, tt := range []struct{ op, callback string }{{"close 2", "downstream_data"}, {"close 3", "downstream_data"}, {"close 2", "new_connection"}} {
		p := newProbe(t, tt.callback+" "+tt.op)
		c := link{p.Worker(0).NewConnection(), t}
		step, err := c.Open()
		want := ConnectionStep{Flow: Reset, Connect: true}
		if tt.callback == "downstream_data" {
			c.check(step, err, ConnectionStep{Connect: true})
			step, err = c.DownstreamData([]byte("bye"), false)
			want = ConnectionStep{Flow: Reset, Data: []byte("bye")}
		}
		c.check(step, err, want)
		got := p.heard()
		if tail := tt.op + " = 0\n> downstream_connection_close 2 1\n> done 2\n> log 2\n> delete 2"; !bytes.HasSuffix([]byte(got), []byte(tail)) {
			t.Errorf("%s in %s: heard\n%s", tt.op, tt.callback, got)
		}
		ok(t, c.Close(CloseRemote))
		if _, err := c.UpstreamData(nil, false); !errors.Is(err, ErrStreamEnded) {
			t.Errorf("err %v", err)
		}
		p.expect("")
	}
}

// A plugin that closes the connection upon the end of upstream's data hears nothing of upstream's close behind its own end.
func TestConnectionClosedAtTheEndOfUpstream(t *testing.T) {
	p := newProbe(t, "upstream_data close 2")
	c := p.open(ConnectionStep{Connect: true})
	c.server("bye", true, ConnectionStep{Flow: Reset, Data: []byte("bye"), End: true})
	p.expect(`> context_create 2 1
		> new_connection 2
		> upstream_data 2 3 1
		close 2 = 0
		> downstream_connection_close 2 1
		> done 2
		> log 2
		> delete 2`)
}

// On an HTTP stream the TCP types do nothing, and the other way round.
func TestStreamTypesOfTheOtherKind(t *testing.T) {
	p := newProbe(t, `
		request_headers continue 2
		request_headers continue 3
		request_headers close 2
		request_headers close 3
		request_headers close 4
		request_headers continue 4
		request_headers buf 2 0 9
		request_headers buf 3 0 9
		downstream_data continue 1
		downstream_data close 0
		downstream_data close 1`)
	p.pass()
	p.results("continue 2 = 0\ncontinue 3 = 12\nclose 2 = 0\nclose 3 = 0\nclose 4 = 2\ncontinue 4 = 2\nbuf 2 0 9 = 0\nbuf 3 0 9 = 0")
	c := p.open(ConnectionStep{Connect: true})
	p.heard()
	c.client("a", false, ConnectionStep{Data: []byte("a")})
	p.results("continue 1 = 0\nclose 0 = 0\nclose 1 = 0")
}

func TestConnectionProperties(t *testing.T) {
	p := newProbe(t, `
		new_connection prop source$address
		new_connection prop mine
		new_connection setprop mine value
		new_connection prop mine
		new_connection prop filter_state$wasm.mine
		log prop source$address
		log prop mine
		log prop plugin_name`, func(c *Config) { c.Name = "n" })
	c := link{p.Worker(0).NewConnection(), t}
	c.SetProperty("source.address", []byte("10.0.0.9:1"))
	step, err := c.Open()
	c.check(step, err, ConnectionStep{Connect: true})
	c.SetProperty("source.address", nil)
	ok(t, c.Close(CloseLocal))
	p.results(`prop source$address = 0 10.0.0.9:1
		prop mine = 1
		setprop mine value = 0
		prop mine = 0 value
		prop filter_state$wasm.mine = 0 value
		prop source$address = 1
		prop mine = 0 value
		prop plugin_name = 0 n`)
	if v, ok := c.FilterState("wasm.mine"); string(v) != "value" || !ok {
		t.Errorf("filter state %q", v)
	}
}

// What becomes of connections where the plugin has crashed, by failure policy.
func TestConnectionsAfterACrash(t *testing.T) {
	for _, policy := range []FailurePolicy{FailClosed, FailOpen, FailReload} {
		p := newProbe(t, "downstream_data panic boom", func(c *Config) { c.FailurePolicy = policy })
		other := p.open(ConnectionStep{Connect: true})
		wake := other.Wake()
		c := p.open(ConnectionStep{Connect: true})
		step, err := c.DownstreamData([]byte("x"), false)
		if !errors.Is(err, ErrTrap) || step.Flow != Reset {
			t.Errorf("policy %d: step %+v, err %v", policy, step, err)
		}
		p.heard()
		ok(t, c.Close(CloseLocal))
		<-wake
		other.client("y", false, ConnectionStep{Flow: Reset})
		p.Advance(DefaultReloadBackoff)
		switch policy {
		case FailClosed:
			p.open(ConnectionStep{Flow: Reset})
			p.expect("")
		case FailOpen:
			next := p.open(ConnectionStep{Connect: true})
			next.client("a", true, ConnectionStep{Data: []byte("a"), End: true})
			next.server("b", true, ConnectionStep{Data: []byte("b"), End: true})
			ok(t, next.Close(CloseRemote))
			p.expect("")
		case FailReload:
			p.open(ConnectionStep{Connect: true})
			p.expect("> context_create 1 0\n> vm_start 1 0\n> configure 1 26\n> context_create 2 1\n> new_connection 2")
		}
	}
}

// A connection holds its plugin context as a stream does.
func TestConnectionHoldsItsRoot(t *testing.T) {
	p := newProbe(t, "downstream_data log 2 old")
	c := p.open(ConnectionStep{Connect: true})
	ok(t, p.Reconfigure([]byte("downstream_data log 2 new")))
	p.Drain()
	p.heard()
	c.client("a", false, ConnectionStep{Data: []byte("a")})
	ok(t, c.Close(CloseRemote))
	p.expect(`> downstream_data 2 1 0
		old
		log 2 old = 0
		> downstream_connection_close 2 2
		> done 2
		> log 2
		> delete 2
		> done 1
		> delete 1`)
}

// The last connection of a virtual machine whose update has drained takes it along.
func TestConnectionEndsTheOldMachine(t *testing.T) {
	p := newFree(t, "")
	c := p.open(ConnectionStep{Connect: true})
	ok(t, p.Update(t.Context(), Update{Wasm: newCode(t)}))
	p.Drain()
	if n := len(p.Worker(0).old); n != 1 {
		t.Fatalf("%d old machines", n)
	}
	ok(t, c.Close(CloseRemote))
	if n := len(p.Worker(0).old); n != 0 {
		t.Errorf("%d old machines", n)
	}
}

// A module without TCP callbacks lets everything pass.
func TestConnectionWithoutCallbacks(t *testing.T) {
	p := &probe{t: t}
	var err error
	p.Host, err = New(t.Context(), Config{Wasm: guest(t, "bare")})
	ok(t, err)
	defer p.Host.Close()
	c := p.open(ConnectionStep{Connect: true})
	c.client("a", true, ConnectionStep{Data: []byte("a"), End: true})
	c.server("b", true, ConnectionStep{Data: []byte("b"), End: true})
	ok(t, c.Close(CloseRemote))
	unopened := p.Worker(0).NewConnection()
	ok(t, unopened.Close(CloseRemote))
	if n := p.Worker(0).OpenStreams(); n != 0 {
		t.Errorf("%d open", n)
	}
}
