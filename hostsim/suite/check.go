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
	overruns := a.host.Overruns()
	a.host.Advance(0)
	a.checkCrash(e, a.newCrash())
	a.checkRest(e.place, overruns)
	a.checkObserved(e)
}

// checkRest finds a plugin that has kept time from passing since there were that many overruns.
func (a *attempt) checkRest(p place, overruns uint64) {
	if a.host.Overruns() > overruns {
		a.fail(p, "", "the plugin never comes to rest: more than %d events at one moment, each the cause of another", hostsim.MaxEvents)
	}
}

func (a *attempt) checkRefused(e *expectation, refused error, what string) {
	switch {
	case e.refused == nil && refused != nil:
		a.fail(e.place, "", "%s was refused: %s", what, firstLine(refused.Error())) // the log has the stack
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

// outcome is how the exchange stands, or stood before its end.
func (x *stream) outcome() string {
	switch {
	case x.stood != "":
		return x.stood
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
