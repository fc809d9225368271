package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/exchange"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// compare holds one text to what is expected of it.
func (a *attempt) compare(m *matcher, values []string, format string, args ...any) {
	if !m.holds(values) {
		a.fail(m.place, diff(m.String(), m.seen(values)), format, args...)
	}
}

// checkStart holds the start to what the case expects of it.
func (a *attempt) checkStart(c *testCase) {
	e := c.start
	if e == nil {
		e = &expectation{place: c.place}
	}
	a.checkRefused(e, a.plugin.refused, "the start")
	if a.host == nil {
		a.checkLog(e)
		return
	}
	a.host.Advance(0)
	a.checkCrash(e, a.newCrash())
	a.checkObserved(e)
}

func (a *attempt) checkRefused(e *expectation, refused error, what string) {
	switch {
	case e.refused == nil && refused != nil:
		a.fail(e.place, "", "%s was refused: %v", what, refused)
	case e.refused != nil && refused == nil:
		a.fail(e.refused.place, diff("refused: "+e.refused.String(), "accepted"), "%s", what)
	case refused != nil:
		a.compare(e.refused, []string{refused.Error()}, "why %s was refused", what)
	}
}

func (a *attempt) checkCrash(e *expectation, crash error) {
	switch {
	case e.crash == nil && crash != nil:
		a.fail(e.place, "", "the plugin crashed: %s", firstLine(crash.Error()))
	case e.crash != nil && crash == nil:
		a.fail(e.crash.place, diff("a crash: "+e.crash.String(), "no crash"), "crash")
	case crash != nil && !e.crash.holds([]string{crash.Error()}): // the log has the stack
		a.fail(e.crash.place, diff(e.crash.String(), firstLine(crash.Error())), "why the plugin crashed")
	}
}

// check holds a step to what is expected of it.
func (a *attempt) check(s *step, x *stream, refused error) {
	e := s.expect
	if e == nil {
		e = &expectation{place: s.place}
	}
	a.checkCrash(e, a.newCrash())
	if s.reconfigure {
		a.checkRefused(e, refused, "the configuration")
	}
	if x != nil {
		a.checkOutcome(s, e, x)
		a.checkActions(e, x)
		a.checkMessage(e.request, "request", x.request())
		a.checkMessage(e.response, "response", x.response())
	}
	a.checkObserved(e)
}

// outcome is how the exchange stands.
func (x *stream) outcome() string {
	switch {
	case x.Reset:
		return "reset"
	case x.Local != nil:
		return "replied"
	case x.Paused():
		return "paused"
	}
	return "forwarded"
}

// checkOutcome: a whole exchange that ends by itself must not hang or be cut unless the step says so.
func (a *attempt) checkOutcome(s *step, e *expectation, x *stream) {
	got := x.outcome()
	switch {
	case e.outcome != nil && e.outcome.text != got:
		a.fail(e.outcome.place, diff(e.outcome.text, got), "outcome")
	case e.outcome == nil && s.stream == "" && s.end == nil && e.crash == nil && (got == "paused" || got == "reset"):
		what := map[string]string{"paused": "the plugin paused the %s and did not let it go on", "reset": "the stream was cut, the %s unfinished"}[got]
		which := "request"
		if x.Messages[exchange.Request].Complete {
			which = "response"
		}
		a.fail(e.place, "", what+"; if that is right, expect outcome: %s", which, got)
	}
	if x.Err != nil && !isTrap(x.Err) {
		a.fail(e.place, "", "%v", x.Err)
	}
}

func (a *attempt) checkActions(e *expectation, x *stream) {
	for _, phase := range phases {
		want, got := e.actions[phase], x.actions[phase]
		if want != nil && !slices.Equal(want.words, got) {
			a.fail(want.place, diff(strings.Join(want.words, ", "), orNone(strings.Join(got, ", "))), "action after %s", phase)
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// seen is a message as it went on.
type seen struct {
	sent, headers hostsim.Headers
	body          []byte
	trailers      hostsim.Headers
}

func (x *stream) request() seen {
	m := x.Messages[exchange.Request]
	return seen{m.Sent, m.Headers, m.Body, m.Trailers}
}

func (x *stream) response() seen {
	if x.Local != nil {
		return seen{nil, x.Local.Headers, x.Local.Body, nil}
	}
	m := x.Messages[exchange.Response]
	return seen{m.Sent, m.Headers, m.Body, m.Trailers}
}

// checkMessage holds what went on to what is expected of it.
func (a *attempt) checkMessage(e *messageExpectation, what string, got seen) {
	switch {
	case e == nil:
		return
	case e.absent:
		if got.headers != nil {
			a.fail(e.place, diff("(absent)", headerText(got.headers)), "%s", what)
		}
		return
	case got.headers == nil:
		a.fail(e.place, "", "no %s went on", what)
		return
	}
	for _, h := range e.pseudo {
		a.compare(h.what, got.headers.Values(h.key), "%s %s", what, strings.TrimPrefix(h.key, ":"))
	}
	for _, h := range e.headers {
		a.compare(h.what, got.headers.Values(h.key), "%s header %s", what, h.key)
	}
	if e.changed != nil {
		a.checkChanges(e, what, got)
	}
	if e.body != nil {
		a.compare(e.body, bodyValues(got.body), "%s body", what)
	}
	for _, h := range e.trailers {
		a.compare(h.what, got.trailers.Values(h.key), "%s trailer %s", what, h.key)
	}
}

// checkChanges holds the plugin to having changed exactly the headers that are listed.
func (a *attempt) checkChanges(e *messageExpectation, what string, got seen) {
	if got.sent == nil {
		a.fail(*e.changed, "", "changes of a %s that was not sent by a client or upstream", what)
		return
	}
	listed := map[string]bool{}
	for _, h := range e.changes {
		listed[h.key] = true
		a.compare(h.what, got.headers.Values(h.key), "%s header %s", what, h.key)
		if slices.Equal(got.sent.Values(h.key), got.headers.Values(h.key)) {
			a.fail(h.what.place, "", "%s header %s is as it was sent", what, h.key)
		}
	}
	for _, kv := range slices.Concat(got.sent, got.headers) {
		name := strings.ToLower(kv[0])
		before, after := got.sent.Values(name), got.headers.Values(name)
		if !listed[name] && !slices.Equal(before, after) {
			listed[name] = true
			none := &matcher{}
			a.fail(*e.changed, diff(none.seen(before), none.seen(after)), "%s header %s was changed too", what, name)
		}
	}
}

func headerText(h hostsim.Headers) string {
	var b strings.Builder
	for _, kv := range h {
		fmt.Fprintf(&b, "%s: %s\n", kv[0], kv[1])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// checkObserved holds what the plugin left behind in the step to what is expected of it.
func (a *attempt) checkObserved(e *expectation) {
	a.checkLog(e)
	for _, m := range e.metrics {
		value, there := a.metric(m.key)
		if !m.what.holds(value, there) {
			got := "(absent)"
			if there {
				got = fmt.Sprint(value)
			}
			a.fail(m.what.place, diff(m.what.String(), got), "metric %s", m.key)
		}
	}
	for _, k := range e.sharedData {
		var values []string
		if value, _, ok := a.host.SharedData().Get(k.key); ok {
			values = []string{string(value)}
		}
		a.compare(k.what, values, "shared data %s", k.key)
	}
	a.checkCallouts(e)
}

// metric is a counter's or gauge's value, or a histogram's number of records.
func (a *attempt) metric(name string) (int64, bool) {
	m, ok := a.host.Metric(name)
	if ok && m.Kind == hostsim.MetricHistogram {
		return int64(m.Count), true
	}
	return m.Signed(), ok
}

func (a *attempt) checkLog(e *expectation) {
	lines := a.log[a.mark.log:]
	for _, want := range e.log {
		if !slices.ContainsFunc(lines, want.holds) {
			a.fail(want.text.place, diff(want.String(), ""), "no such line was logged")
		}
	}
	for _, bad := range e.noLog {
		if i := slices.IndexFunc(lines, bad.holds); i >= 0 {
			a.fail(bad.text.place, diff("", entryText(lines[i])), "a line that should not be there was logged")
		}
	}
}

func (a *attempt) checkCallouts(e *expectation) {
	for _, text := range a.unasked[a.mark.unasked:] {
		a.fail(e.place, "", "none of its cluster's answers is for the plugin's request to %s", text)
	}
	if !e.hasCallouts {
		return
	}
	made := a.calls[a.mark.calls:]
	same := len(made) == len(e.callouts)
	for i := range e.callouts {
		same = same && e.callouts[i].fits(made[i])
	}
	if !same {
		var want, got []string
		for _, c := range e.callouts {
			want = append(want, c.String())
		}
		for _, c := range made {
			got = append(got, c.String())
		}
		a.fail(e.calloutsAt, diff(orNone(strings.Join(want, "\n")), orNone(strings.Join(got, "\n"))), "requests of the plugin")
	}
}

// String is what is expected, in the form of madeCall.String.
func (c *callout) String() string {
	one := func(key string) string {
		for _, h := range c.pseudo {
			if h.key == key {
				return h.what.String()
			}
		}
		return "*"
	}
	s := "*"
	if c.cluster != nil {
		s = c.cluster.String()
	}
	s += ": " + one(":method") + " " + strings.TrimPrefix(one(":authority")+one(":path"), "*")
	for _, h := range c.headers {
		s += "\n  " + h.key + ": " + h.what.String()
	}
	if c.body != nil {
		s += "\n  body " + c.body.String()
	}
	if c.worker != nil {
		s += "\n  from " + threadName(*c.worker)
	}
	return s
}
