package suite

import (
	"fmt"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/exchange"
)

// attempt is one case on its way.
type attempt struct {
	*plugin
	suite    *Suite
	of       *testCase
	streams  map[string]*stream
	mark     mark // where the step began
	problems []Problem
	faults   []fault // of the case, in force
}

// stream is an exchange and what it has done.
type stream struct {
	*exchange.Exchange
	worker  int
	actions map[string][]string // in the step, by phase
	given   [2]bool             // headers are delivered, by direction
	stood   string              // the outcome before the end; "" while it lives
}

func (a *attempt) fail(p place, diff, format string, args ...any) {
	a.problems = append(a.problems, Problem{File: a.suite.file, Line: p.line, Column: p.column, Path: p.path,
		Text: fmt.Sprintf(format, args...), Diff: diff})
}

// step does one step and compares.
func (a *attempt) step(s *step) {
	a.mark = a.plugin.mark()
	if s.faults != nil {
		a.inject(s.faults)
	}
	var x *stream
	var refused error
	overruns := a.host.Overruns()
	switch {
	case s.request != nil || s.response != nil || s.end != nil || s.stream != "":
		x = a.exchange(s)
	case s.advance != nil:
		a.host.Advance(*s.advance)
	case s.reconfigure:
		refused = a.host.Reconfigure(s.config)
	case s.drain:
		a.host.Drain()
	}
	a.host.Advance(0) // what is due now
	for _, other := range a.streams {
		other.Poll()
	}
	if x != nil {
		x.Poll()
	}
	a.check(s, x, refused)
	a.checkRest(s.place, overruns)
	inOrder(a.problems)
}

// exchange delivers what the step has for its stream.
func (a *attempt) exchange(s *step) *stream {
	x := a.streams[s.stream]
	if x == nil {
		x = &stream{}
		if s.worker != nil {
			x.worker = *s.worker
		}
		x.Exchange = exchange.New(a.host.Worker(x.worker).NewStream())
		if s.stream != "" {
			a.streams[s.stream] = x
		}
	}
	x.actions = map[string][]string{}
	response := s.response
	if response == nil && s.stream == "" && s.end == nil {
		response = &message{response: true}
	}
	if s.request != nil {
		x.deliver(exchange.Request, s.request)
		if s.stream == "" && !s.request.more {
			a.await(x, exchange.Request)
		}
	}
	whole := s.stream == "" && !s.request.more
	if response != nil && (!whole || x.Messages[exchange.Request].Complete) {
		x.deliver(exchange.Response, response)
		if s.stream == "" && !response.more {
			a.await(x, exchange.Response)
		}
	}
	a.end(s, x)
	return x
}

// end ends the stream where the step says so, or is a whole exchange.
func (a *attempt) end(s *step, x *stream) {
	switch {
	case s.end != nil:
		x.leave(*s.end)
	case s.stream != "":
	case x.Paused(): // its client loses patience
		x.leave(hostsim.EndClientGone)
	default:
		x.leave(hostsim.EndNormal)
	}
}

// leave ends the stream, and remembers how it stood before.
func (x *stream) leave(reason hostsim.EndReason) {
	x.stood = x.outcome()
	x.End(reason)
}

// Bounds on what await waits for, on the virtual clock and in answers.
const (
	maxWait    = 10 * time.Minute
	maxAnswers = 10_000
)

// await lets virtual time pass while the plugin holds d back and has requests of its own under way.
func (a *attempt) await(x *stream, d exchange.Direction) {
	until := a.clock.Monotonic() + maxWait
	overruns := a.host.Overruns()
	for range maxAnswers {
		x.Poll()
		next := a.nextAnswer()
		if x.Over() || x.Messages[d].Complete || next == 0 || next > until || a.host.Overruns() > overruns {
			return
		}
		a.host.Advance(next - a.clock.Monotonic())
	}
}

// nextAnswer is when the plugin hears next of one of its requests, or 0.
func (a *attempt) nextAnswer() (next time.Duration) {
	now := a.clock.Monotonic()
	for _, c := range a.calls {
		if c.due != 0 && !c.heard && (next == 0 || c.due < next) {
			next = max(c.due, now)
		}
	}
	for _, c := range a.calls {
		c.heard = c.heard || c.due != 0 && c.due <= next
	}
	return next
}

// deliver sends a message or a piece of one, as far as the stream takes it.
func (x *stream) deliver(d exchange.Direction, m *message) {
	for path, value := range m.properties {
		x.Stream().SetProperty(path, value)
	}
	prefix := "request_"
	if d == exchange.Response {
		prefix = "response_"
	}
	note := func(phase string, f hostsim.Flow) {
		x.actions[prefix+phase] = append(x.actions[prefix+phase], actionOf(f))
	}
	last := !m.more && m.trailers == nil // the last part carries the end
	chunks := m.body.chunks()
	if !x.given[d] {
		x.given[d] = true
		note("headers", x.Headers(d, m.all(), last && len(chunks) == 0))
	} else if last && len(chunks) == 0 {
		note("body", x.Body(d, nil, true))
	}
	for i := 0; i < len(chunks) && !x.Over(); i++ {
		note("body", x.Body(d, chunks[i], last && i == len(chunks)-1))
	}
	if m.trailers != nil && !x.Over() {
		note("trailers", x.Trailers(d, m.trailers))
	}
}

// finish ends the streams that are still open: normally where both messages are complete, else as a client that leaves.
func (a *attempt) finish() {
	for _, name := range sortedKeys(a.streams) {
		x := a.streams[name]
		reason := hostsim.EndClientGone
		if x.Messages[exchange.Response].Complete || x.Over() {
			reason = hostsim.EndNormal
		}
		x.End(reason)
	}
	if !a.suite.shared && len(a.problems) == 0 {
		a.checkPlayed()
	}
	if a.host != nil && len(a.problems) == 0 {
		if crash := a.newCrash(); crash != nil {
			a.fail(a.of.place, "", "the plugin crashed when the streams ended: %s", firstLine(crash.Error()))
		}
	}
}
