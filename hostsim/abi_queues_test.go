package hostsim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSharedQueueStatuses(t *testing.T) {
	p := newProbe(t, `
		request_headers qresolve ~ q
		request_headers qregister q
		request_headers qregister q
		request_headers qregister other
		request_headers qresolve ~ q
		request_headers qresolve here q
		request_headers qresolve elsewhere q
		request_headers dequeue 0
		request_headers dequeue 3
		request_headers dequeue 1
		request_headers enqueue 3 x
		request_headers enqueue 1 one
		request_headers enqueue 1 ~
		request_headers enqueue 1 two
		request_headers dequeue 1
		request_headers dequeue 1
		request_headers dequeue 1
		request_headers dequeue 1`, func(c *Config) { c.VMID = "here" })
	p.pass()
	p.results(`
		qresolve ~ q = 1
		qregister q = 0 1
		qregister q = 0 1
		qregister other = 0 2
		qresolve ~ q = 0 1
		qresolve here q = 0 1
		qresolve elsewhere q = 1
		dequeue 0 = 1
		dequeue 3 = 1
		dequeue 1 = 7
		enqueue 3 x = 1
		enqueue 1 one = 0
		enqueue 1 ~ = 0
		enqueue 1 two = 0
		dequeue 1 = 0 one
		dequeue 1 = 0
		dequeue 1 = 0 two
		dequeue 1 = 7`)
}

// Every message is told of, once, to the plugin context on the thread that registered last, even one that another has
// taken meanwhile.
func TestQueueReadyGoesToTheLastListener(t *testing.T) {
	p := newProbe(t, `
		configure qregister q
		request_headers enqueue 1 hello
		request_headers enqueue 1 again
		queue_ready dequeue 1`, func(c *Config) { c.Workers = 2 })
	p.pass() // on worker 0; worker 1 was configured last
	p.heard()
	q := p.SharedData().Queue("q")
	if q.ID() != 1 || q.Len() != 2 {
		t.Errorf("queue %d of %d messages", q.ID(), q.Len())
	}
	if m, ok := q.Dequeue(); string(m) != "hello" || !ok {
		t.Errorf("took %q %v", m, ok)
	}
	p.Advance(0)
	p.expect(`> queue_ready 1 1
		dequeue 1 = 0 again
		> queue_ready 1 1
		dequeue 1 = 7`)
	for _, e := range p.Logs() {
		if e.Message == "> queue_ready 1 1" && e.Worker != 1 {
			t.Errorf("worker %d was told", e.Worker)
		}
	}
}

// A queue that a stream's callback registers belongs to the plugin context. What is registered in a canary is told of on
// the main thread.
func TestQueueOfAStreamAndOfTheCanary(t *testing.T) {
	p := newProbe(t, "request_headers qregister s\nqueue_ready status")
	p.pass()
	p.heard()
	p.SharedData().Queue("s").Enqueue([]byte("x"))
	p.Advance(0)
	p.expect("> queue_ready 1 1\nstatus = 0 0")

	p = newProbe(t, "configure when 1 qregister c")
	p.OnHostCall(nil)
	if err := p.try(p.program.Load(), []byte("configure qregister canary\nconfigure return 0")); !errors.Is(err, ErrRefused) {
		t.Fatalf("err %v", err)
	}
	p.SharedData().Queue("canary").Enqueue(nil)
	p.Advance(0)
	if n := p.Main().Counters().Callbacks["proxy_on_queue_ready"]; n != 1 {
		t.Errorf("the main thread was told %d times", n)
	}
	p.expect("")
}

// Plugins of one process reach each other's queues by vm_id and name. A message outlives its listener, which is not told.
func TestQueuesBetweenPlugins(t *testing.T) {
	shared := NewSharedData()
	in := func(vmID string) func(*Config) {
		return func(c *Config) { c.VMID, c.SharedData = vmID, shared }
	}
	a := newProbe(t, "configure qregister q\nqueue_ready dequeue 1", in("a"))
	b := newProbe(t, "request_headers qresolve a q\nrequest_headers enqueue 1 from%b", in("b"))
	b.pass()
	b.results("qresolve a q = 0 1\nenqueue 1 from%b = 0")
	b.Advance(time.Hour)
	a.expect("")
	a.Advance(0)
	a.expect("> queue_ready 1 1\ndequeue 1 = 0 from b")

	ok(t, a.Reconfigure([]byte("request_headers panic boom\n")))
	a.Drain() // the context that registered is gone
	a.heard()
	b.pass()
	a.Advance(0)
	a.expect("")
	if n := shared.Space("a").Queue("q").Len(); n != 1 {
		t.Errorf("%d messages wait", n)
	}
	if _, err := a.Worker(0).NewStream().RequestHeaders(get, true); !errors.Is(err, ErrTrap) {
		t.Fatal(err)
	}
	b.pass()
	a.Advance(0) // the virtual machine is dead: the notice is lost
	if _, pending := a.Worker(0).mail.first(); pending {
		t.Error("a notice for a dead virtual machine waits")
	}
}

// A message falls due when it is sent, before an answer and a tick of the same moment.
func TestQueueReadyComesBeforeTicks(t *testing.T) {
	p := newProbe(t, `
		configure qregister q
		configure tickevery 100
		tick when 2 enqueue 1 x`)
	p.heard()
	p.Advance(200 * time.Millisecond)
	// The main thread's second tick comes first, and its message is there before this worker's.
	p.expect("> tick 1\n> queue_ready 1 1\n> tick 1\nenqueue 1 x = 0\n> queue_ready 1 1")
	p.Advance(99 * time.Millisecond)
	p.heard()
	p.SharedData().Queue("q").Enqueue(nil)
	p.Advance(time.Millisecond)
	p.expect("> queue_ready 1 1\n> tick 1")
}

// RunTicks delivers messages that come from elsewhere.
// What fell due earlier comes first, also where nobody looked until later.
func TestQueueReadyComesAfterEarlierTicks(t *testing.T) {
	clock := NewVirtualClock()
	p := newProbe(t, "configure tickevery 1000\nconfigure qregister q", func(c *Config) { c.Clock = clock })
	clock.Advance(1500 * time.Millisecond) // runs nothing
	p.SharedData().Queue("q").Enqueue([]byte("late"))
	p.heard()
	p.Advance(0)
	if got := p.heard(); !strings.HasPrefix(got, "> tick 1") || !strings.Contains(got, "> queue_ready 1 1") {
		t.Errorf("heard\n%s", got)
	}
}

func TestRunTicksDeliversMessages(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := newProbe(t, "configure qregister q\nqueue_ready log 2 told", func(c *Config) {
		c.Clock = &steppingClock{step: time.Millisecond}
		c.Log = func(e LogEntry) {
			if e.Message == "told" {
				cancel()
			}
		}
	})
	go p.SharedData().Queue("q").Enqueue(nil)
	if err := p.RunTicks(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
}

// No message is lost or told twice where workers of several plugins use one queue at once.
func TestQueueUnderConcurrentWorkers(t *testing.T) {
	const workers, each = 2, 100
	p := newProbe(t, "configure qregister q\nrequest_headers enqueue 1 x\nresponse_headers dequeue 1", func(c *Config) {
		c.Workers, c.LogLevel = workers, LogCritical
	})
	done := make(chan error)
	for i := range workers {
		go func() {
			for range each {
				s := p.Worker(i).NewStream()
				_, err1 := s.RequestHeaders(get, true)
				_, err2 := s.ResponseHeaders(reply, true)
				if err := errors.Join(err1, err2, s.End(EndNormal)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range workers {
		ok(t, <-done)
	}
	p.Advance(0)
	if n := p.SharedData().Queue("q").Len(); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	if n := p.Counters().Callbacks["proxy_on_queue_ready"]; fmt.Sprint(n) != fmt.Sprint(workers*each) {
		t.Errorf("told %d times, want %d", n, workers*each)
	}
}
