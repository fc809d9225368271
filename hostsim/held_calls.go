package hostsim

import (
	"fmt"
	"slices"
	"sync"
)

// HeldCalls carries out a host's HTTP calls in steps that a test chooses: what is asked is one step, that the service carries
// it out is another, and that the plugin hears of it a third, which may come first. Calls are numbered from 0 on in the order
// in which the plugin makes them. It is safe for concurrent use, but for what its Fleet does.
type HeldCalls struct {
	// Holds says which calls are held: others are carried out and answered at once. Nil holds all. Set it before the first call.
	Holds func(*HTTPCall) bool

	name  string
	serve func(*HTTPCall) bool
	fleet *Fleet // set while an order runs

	mu      sync.Mutex
	through bool
	calls   []heldCall
}

// heldCall is one call. What the service answers goes to a copy of it, until the plugin is to hear of it.
type heldCall struct {
	call     *HTTPCall
	executed *HTTPCall // nil before
	over     bool      // the plugin has heard
}

// NewHeldCalls returns one whose HTTPCall method is for one host's Config.HTTPCall. Name is what events call the host. Serve
// is what would be that Config.HTTPCall itself, such as etcd.Server.HTTPCalls; it answers at once, if at all.
func NewHeldCalls(name string, serve func(*HTTPCall) bool) *HeldCalls {
	return &HeldCalls{name: name, serve: serve}
}

// TimedOut and BrokenOff are what Envoy answers in place of a service: one that is too slow, and one whose connection ends.
// Source: seen on Envoy 1.36.4 and 1.40.0.
var (
	TimedOut  = timedOut
	BrokenOff = HTTPResponse{
		Headers: Headers{{":status", "503"}, {"content-length", "95"}, {"content-type", "text/plain"}},
		Body:    []byte("upstream connect error or disconnect/reset before headers. reset reason: connection termination"),
	}
)

// HTTPCall takes a call. Every cluster is one that there is.
func (q *HeldCalls) HTTPCall(c *HTTPCall) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fleet.took()
	if q.through || q.Holds != nil && !q.Holds(c) {
		q.fleet.touch(service)
		q.fleet.note("%s's call: %s %s %s", q.name, c.Headers.Value(":method"), c.Headers.Value(":path"), c.Body)
		found := q.serve(c)
		q.fleet.noteAnswer(q.name+"'s call", c)
		return found
	}
	q.fleet.touch(q.part(len(q.calls)))
	q.fleet.note("%s: %s %s %s", q.part(len(q.calls)), c.Headers.Value(":method"), c.Headers.Value(":path"), c.Body)
	q.calls = append(q.calls, heldCall{call: c})
	return true
}

// service is what HeldCalls of a fleet share.
const service = "the service"

// part is what an exploration calls a call's answer.
func (q *HeldCalls) part(i int) string { return fmt.Sprintf("%s's call %d", q.name, i) }

// Len is the number of calls made, those that are over included.
func (q *HeldCalls) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls)
}

// Call returns a call, for its fields.
func (q *HeldCalls) Call(i int) *HTTPCall {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls[i].call
}

// IsOpen reports whether the plugin has made a call and not heard of it since.
func (q *HeldCalls) IsOpen(i int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.isOpen(i)
}

func (q *HeldCalls) isOpen(i int) bool {
	if i >= len(q.calls) {
		return false
	}
	c := &q.calls[i]
	return !c.over && (c.call.deadline == 0 || c.call.host.clock.Monotonic() < c.call.deadline)
}

// CanExecute reports whether a call has been made that the service has not carried out. One that the plugin has given up
// may still be on its way.
func (q *HeldCalls) CanExecute(i int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return i < len(q.calls) && q.calls[i].executed == nil
}

// CanAnswer reports whether the service has answered a call that is open.
func (q *HeldCalls) CanAnswer(i int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.isOpen(i) && q.calls[i].executed != nil && q.calls[i].executed.answer.Load() != nil
}

// Execute has the service carry out a call, and keeps its answer. It does nothing for one that has been.
func (q *HeldCalls) Execute(i int) {
	q.fleet.touch(service, q.part(i))
	q.mu.Lock()
	c := &q.calls[i]
	if c.executed != nil {
		q.mu.Unlock()
		return
	}
	one := c.call
	c.executed = &HTTPCall{Worker: one.Worker, Cluster: one.Cluster, Headers: one.Headers.Clone(), Body: slices.Clone(one.Body),
		Trailers: one.Trailers.Clone(), Timeout: one.Timeout, host: one.host}
	copied := c.executed
	q.mu.Unlock()
	q.serve(copied)
	q.fleet.noteAnswer(q.part(i), copied)
}

// Answer has the plugin hear what the service has answered.
func (q *HeldCalls) Answer(i int) {
	q.fleet.touch(q.part(i))
	q.mu.Lock()
	copied := q.calls[i].executed
	q.mu.Unlock()
	q.end(i, copied.answer.Load().HTTPResponse)
}

// Fail has the plugin hear something else, such as TimedOut, BrokenOff or a reset (the zero HTTPResponse), whether the service
// has carried out the call or not. It still may, later.
func (q *HeldCalls) Fail(i int, with HTTPResponse) { q.end(i, with) }

func (q *HeldCalls) end(i int, with HTTPResponse) {
	q.mu.Lock()
	c := &q.calls[i]
	over := c.over
	c.over = true
	q.mu.Unlock()
	if over {
		return
	}
	with.After = 0
	c.call.Respond(with)
	if err := c.call.hear(); err != nil {
		panic(err.Error())
	}
}

// Through has every call from here on carried out and answered at once: the plugin hears of the answers as usual, in Advance.
// Those that are open are carried out and answered as well, in the order in which they were made. Those that the plugin has
// given up before the service carried them out are lost.
func (q *HeldCalls) Through() {
	q.mu.Lock()
	q.through = true
	n := len(q.calls)
	q.mu.Unlock()
	for i := range n {
		if !q.IsOpen(i) {
			continue
		}
		if q.Execute(i); q.CanAnswer(i) {
			q.Answer(i)
		}
	}
}

// Hold has calls from here on held again, as they are at first.
func (q *HeldCalls) Hold() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.through = false
}

// Events are the steps of the first n calls, as events of an exploration: that the service carries out a call, that the
// plugin hears the answer, and, failures times in all, that it hears one of fails in its place.
func (q *HeldCalls) Events(n, failures int, fails ...HTTPResponse) (events []Event) {
	for i := range n {
		events = append(events,
			Event{Name: q.part(i) + " is carried out", Ready: func() bool { return q.CanExecute(i) }, Do: func() { q.Execute(i) }},
			Event{Name: q.part(i) + " is answered", Ready: func() bool { return q.CanAnswer(i) }, Do: func() { q.Answer(i) }})
		for _, f := range fails {
			what := " is reset"
			if len(f.Headers) > 0 {
				what = " fails with " + f.Headers.Value(":status")
			}
			events = append(events, Event{Name: q.part(i) + what, Group: q.name + "'s failures", Times: failures,
				Ready: func() bool { return q.IsOpen(i) }, Do: func() { q.Fail(i, f) }})
		}
	}
	return events
}

func (q *HeldCalls) save() (restore func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	calls, through := slices.Clone(q.calls), q.through
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.calls, q.through = append(q.calls[:0], calls...), through
	}
}
