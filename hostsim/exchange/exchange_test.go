package exchange_test

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/exchange"
)

// bare returns a host of a plugin without callbacks: everything passes. What a plugin can do to an exchange is tried by the
// tests of hosttest and suite, which drive streams through this package.
func bare(t *testing.T) *hostsim.Host {
	t.Helper()
	h, err := hostsim.New(t.Context(), hostsim.Config{Wasm: silent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// silent is the smallest module that loads: the ABI marker and the allocator, both one empty function.
var silent = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x09\x02`\x00\x00`\x01\x7f\x01\x7f" +
	"\x03\x03\x02\x00\x01" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x3f\x03\x17proxy_abi_version_0_2_1\x00\x00\x18proxy_on_memory_allocate\x00\x01\x06memory\x02\x00" +
	"\x0a\x09\x02\x02\x00\x0b\x04\x00A\x08\x0b")

func TestExchange(t *testing.T) {
	x := exchange.New(bare(t).Worker(0).NewStream())
	if f := x.Headers(exchange.Request, hostsim.Headers{{":method", "POST"}, {"X-A", "b"}}, false); f != hostsim.Forward {
		t.Errorf("headers: %v", f)
	}
	x.Body(exchange.Request, []byte("one"), false)
	if m := x.Messages[exchange.Request]; m.Complete || string(m.Body) != "one" || m.Headers.Value("x-a") != "b" {
		t.Errorf("before the end: %+v", m)
	}
	x.Body(exchange.Request, []byte("two"), false)
	x.Trailers(exchange.Request, hostsim.Headers{{"t", "v"}})
	if m := x.Messages[exchange.Request]; !m.Complete || string(m.Body) != "onetwo" || m.Trailers.Value("t") != "v" || m.Sent.Value("x-a") != "b" {
		t.Errorf("at the end: %+v", m)
	}
	x.Headers(exchange.Response, hostsim.Headers{{":status", "200"}}, true)
	if m := x.Messages[exchange.Response]; !m.Complete || m.Trailers != nil || x.Over() || x.Paused() {
		t.Errorf("response: %+v", m)
	}
	x.End(hostsim.EndNormal)
	x.End(hostsim.EndClientGone)
	x.Poll()
	if !x.Over() || x.Reset || x.Err != nil {
		t.Errorf("after the end: %+v", x)
	}
}

// A part out of order is an error and changes nothing that went on before.
func TestOutOfOrder(t *testing.T) {
	x := exchange.New(bare(t).Worker(0).NewStream())
	x.Headers(exchange.Request, hostsim.Headers{{":method", "GET"}}, true)
	x.Body(exchange.Request, []byte("late"), true)
	if x.Err == nil || x.Reset || len(x.Messages[exchange.Request].Body) != 0 || !x.Messages[exchange.Request].Complete {
		t.Errorf("%+v", x)
	}
}
