package hostsim

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// endless has plugins that are the cause of their own next event.
var endless = map[string]string{
	"an answer to an HTTP call": "request_headers" + aCall + "\nhttp_call_response" + aCall,
	"an answer to a gRPC call":  "request_headers grpccall grpc s.S m x 0\ngrpc_close grpccall grpc s.S m x 0",
	"a message in a queue":      "configure qregister q\nrequest_headers enqueue 1 x\nqueue_ready enqueue 1 x",
}

// answerAtOnce is for calls whose answers take no time.
func answerAtOnce(c *Config) {
	c.HTTPCall = func(call *HTTPCall) bool { call.Respond(HTTPResponse{}); return true }
	c.GRPCCall = func(call *GRPCCall) bool { call.Respond(GRPCResponse{Status: 5}); return call.Cluster == "grpc" }
}

// newEndless starts one after a request, and returns what counts its events.
func newEndless(t *testing.T, script string) (p *probe, events func() uint64) {
	p = newProbe(t, script+"\nconfigure tickevery 1000", answerAtOnce)
	p.eventLimit = 50
	p.pass()
	return p, func() uint64 {
		c := p.Counters().Callbacks
		return c["proxy_on_http_call_response"] + c["proxy_on_grpc_close"] + c["proxy_on_queue_ready"]
	}
}

// Advance comes back, with the clock where it was asked to be, and says what it has left behind. That runs the next time,
// other events with it.
func TestAdvanceEnds(t *testing.T) {
	for what, script := range endless {
		t.Run(what, func(t *testing.T) {
			p, events := newEndless(t, script)
			p.Advance(2 * time.Second)
			if n, at := events(), p.Now().Sub(VirtualEpoch); n < 50 || n > 60 || p.Overruns() != 1 || at != 2*time.Second {
				t.Errorf("%d events, %d overruns, clock at %v", n, p.Overruns(), at)
			}
			logs := p.Logs()
			if e := logs[len(logs)-1]; e.Level != LogCritical || e.Worker != 0 || !strings.Contains(e.Message, "events at one moment (0s after the start) and still more to come, the next of them "+what) {
				t.Errorf("the last entry is %v", e)
			}
			p.Advance(0)
			if ticks := p.Counters().Callbacks["proxy_on_tick"]; events() <= 60 || p.Overruns() != 2 || ticks == 0 {
				t.Errorf("then %d events, %d overruns, %d ticks", events(), p.Overruns(), ticks)
			}
		})
	}
}

func TestRunDueEnds(t *testing.T) {
	for what, script := range endless {
		t.Run(what, func(t *testing.T) {
			p, events := newEndless(t, script)
			if !p.Worker(0).RunDue() || events() < 50 || events() > 60 || p.Overruns() != 1 {
				t.Errorf("%d events, %d overruns", events(), p.Overruns())
			}
		})
	}
}

// Many events that nothing of that moment has caused are no overrun.
func TestEventsWithinTheLimit(t *testing.T) {
	p := newProbe(t, "configure qregister q")
	p.eventLimit = 50
	for range 3 {
		for range 200 {
			p.SharedData().Queue("q").Enqueue([]byte("x"))
		}
		p.Advance(time.Millisecond)
	}
	if n := p.Counters().Callbacks["proxy_on_queue_ready"]; n != 600 || p.Overruns() != 0 {
		t.Errorf("%d messages heard of, %d overruns", n, p.Overruns())
	}
}

// A plugin that is called back within the same callback's aftermath, which hangs a gateway's thread, dies of it, wherever
// it begins.
func TestEndlessAftermath(t *testing.T) {
	call := " grpccall " + strings.ReplaceAll(string(grpcServiceMessage("nobody")), "\n", "^") + " s.S m x 0"
	p := newProbe(t, "request_headers"+call+"\ngrpc_close"+call, answerAtOnce)
	p.eventLimit = 50
	p.pass()
	if err := p.Worker(0).Err(); !errors.Is(err, ErrTrap) || !strings.Contains(err.Error(), "without end") {
		t.Errorf("the virtual machine died of %v", err)
	}
	if n := p.Counters().Callbacks["proxy_on_grpc_close"]; n != 50 {
		t.Errorf("%d callbacks", n)
	}
	if err := p.Reconfigure([]byte("configure" + call + "\ngrpc_close" + call)); !errors.Is(err, ErrTrap) {
		t.Errorf("a configuration that never ends is refused with %v", err)
	}
}
