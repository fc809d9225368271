package suite

import (
	"slices"
)

// testCase reads one case.
func (d *decoder) testCase(v value, s *Suite, start *expectation) *testCase {
	parts := caseParts{start: start}
	c := &testCase{place: v.place, own: s.base}
	n := len(d.problems)
	has := object(d, v, caseFields, &parts)
	c.name, c.start = parts.name, parts.start
	if _, ok := has["name"]; !ok && !d.failed(n) {
		d.fail(v.place, "no name")
	}
	if parts.plugin != nil || parts.gateway != nil {
		if p := firstOf(has, "plugin", "gateway"); s.shared {
			d.fail(p, "the cases share one plugin, so none has settings of its own; allowed: steps with reconfigure, or no shared")
		}
		c.own = s.base.clone()
		c.own.faults = nil
		d.settings(parts.plugin, parts.gateway, c.own)
		if c.ownFaults = c.own.faults != nil; !c.ownFaults {
			c.own.faults = s.base.faults
		}
	}
	d.steps(v, has, &parts, c)
	d.checkRefusal(c)
	streams := map[string]*streamState{}
	for _, st := range c.steps {
		d.checkStep(st, c, streams)
	}
	return c
}

func firstOf(has map[string]place, keys ...string) place {
	for _, k := range keys {
		if p, ok := has[k]; ok {
			return p
		}
	}
	return place{}
}

// steps reads the case's list, or takes the keys of its only step.
func (d *decoder) steps(v value, has map[string]place, parts *caseParts, c *testCase) {
	var own []string
	for _, f := range stepFields {
		if _, ok := has[f.key]; ok {
			own = append(own, f.key)
		}
	}
	if parts.hasSteps && len(own) > 0 {
		d.fail(has[own[0]], "%s beside steps; allowed: steps, or the keys of one step", own[0])
		return
	}
	if len(own) > 0 {
		parts.only.place = v.place
		c.steps = append(c.steps, &parts.only)
	}
	for _, item := range parts.steps {
		st := &step{place: item.place}
		object(d, item, stepFields, st)
		c.steps = append(c.steps, st)
	}
}

// checkRefusal holds a case to either being refused or doing something.
func (d *decoder) checkRefusal(c *testCase) {
	refused := c.start != nil && c.start.refused != nil
	if refused && len(c.steps) > 0 {
		d.fail(c.steps[0].place, "a step after a start that is refused")
	}
}

// actions of a step exclude each other.
func (s *step) does() []string {
	var list []string
	add := func(name string, is bool) {
		if is {
			list = append(list, name)
		}
	}
	add("an exchange", s.request != nil || s.response != nil || s.end != nil || s.stream != "")
	add("advance", s.advance != nil)
	add("reconfigure", s.reconfigure)
	add("drain", s.drain)
	return list
}

// checkStep finds steps that cannot be meant.
func (d *decoder) checkStep(s *step, c *testCase, streams map[string]*streamState) {
	does := s.does()
	switch {
	case len(does) > 1:
		d.fail(s.place, "%s and %s in one step; allowed: one of them", does[0], does[1])
	case len(does) == 0 && s.expect == nil && s.faults == nil:
		d.fail(s.place, "does nothing; needed: request, advance, reconfigure, drain, faults or expect")
	case s.stream == "" && s.request == nil && (s.response != nil || s.end != nil):
		d.fail(s.place, "no request; needed, or the name of a stream that has begun")
	case s.worker != nil && s.request == nil && s.stream == "":
		d.fail(s.place, "worker is for a step that begins a stream")
	case s.worker != nil && *s.worker >= max(1, c.own.config.Workers):
		d.fail(s.place, "worker %d; allowed: 0 to %d (gateway.workers)", *s.worker, max(1, c.own.config.Workers)-1)
	}
	if s.request != nil && s.request.more && s.response != nil && s.stream == "" && s.end == nil {
		d.fail(s.request.place, "more without end, in a step that is a whole exchange; allowed: a stream's name, or end")
	}
	if s.stream != "" {
		d.checkStream(s, streams)
	}
	if s.expect != nil {
		d.checkExpect(s, does)
	}
}

// streamState is how far a named stream has come by the steps before.
type streamState struct{ begun, requestDone, responseBegun, responseDone, ended bool }

// checkStream follows a named stream through the case.
func (d *decoder) checkStream(s *step, streams map[string]*streamState) {
	st := streams[s.stream]
	if st == nil {
		st = &streamState{}
		streams[s.stream] = st
	}
	switch name := short(s.stream); {
	case !st.begun && s.request == nil:
		d.fail(s.place, "stream %q has not begun; needed: request", name)
	case st.ended:
		d.fail(s.place, "stream %q has ended", name)
	case st.begun && s.worker != nil:
		d.fail(s.place, "stream %q has its worker already", name)
	case s.request != nil && st.requestDone:
		d.fail(s.request.place, "the request is complete; allowed: more in the step before")
	case s.response != nil && st.responseDone:
		d.fail(s.response.place, "the response is complete; allowed: more in the step before")
	case s.request != nil && st.begun && s.request.begins():
		d.fail(s.request.place, "the request's headers have been sent; allowed: body, trailers, more, properties")
	case s.response != nil && st.responseBegun && s.response.begins():
		d.fail(s.response.place, "the response's headers have been sent; allowed: body, trailers, more, properties")
	}
	st.begun = true
	st.requestDone = st.requestDone || s.request != nil && !s.request.more
	st.responseBegun = st.responseBegun || s.response != nil
	st.responseDone = st.responseDone || s.response != nil && !s.response.more
	st.ended = s.end != nil
}

// checkExpect finds expectations about what the step does not do.
func (d *decoder) checkExpect(s *step, does []string) {
	e := s.expect
	exchange := slices.Contains(does, "an exchange")
	of := func(name string, is bool, p place) {
		if is && !exchange {
			d.fail(p, "%s is of an exchange, and the step has none", name)
		}
	}
	if e.request != nil {
		of("request", true, e.request.place)
	}
	if e.response != nil {
		of("response", true, e.response.place)
	}
	if e.outcome != nil {
		of("outcome", true, e.outcome.place)
	}
	of("actions", e.actions != nil, e.actionsAt)
	if e.refused != nil && !s.reconfigure {
		d.fail(e.refused.place, "refused is of start, and of steps with reconfigure")
	}
}
