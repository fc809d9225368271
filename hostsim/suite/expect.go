package suite

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// expectation is what a step must lead to. What it does not mention may be anything, but for crashes, refusals and
// exchanges that do not end, which a step must ask for.
type expectation struct {
	place
	request, response *messageExpectation
	actions           map[string]*actionList
	actionsAt         place
	outcome           *word
	refused, crash    *matcher
	log, noLog        []*logLine
	metrics           []keyed[*number]
	sharedData        []keyed[*matcher]
	callouts          []*callout
	hasCallouts       bool
	calloutsAt        place
}

// keyed is an expectation about something with a name.
type keyed[T any] struct {
	key  string
	what T
}

// word is one of several words with its place.
type word struct {
	place
	text string
}

// messageExpectation is about what goes on in one direction.
type messageExpectation struct {
	place
	absent   bool
	pseudo   []keyed[*matcher] // by header name; the key is that of the suite
	headers  []keyed[*matcher]
	changes  []keyed[*matcher]
	changed  *place // where changes are expected
	body     *matcher
	trailers []keyed[*matcher]
}

var outcomes = []string{"forwarded", "replied", "paused", "reset"}

var expectFields = slices.Concat([]field[expectation]{
	{"request", func(d *decoder, v value, e *expectation) { e.request = d.messageExpectation(v, expectRequestFields) }},
	{"response", func(d *decoder, v value, e *expectation) { e.response = d.messageExpectation(v, expectResponseFields) }},
	{"actions", func(d *decoder, v value, e *expectation) { e.actions, e.actionsAt = d.actions(v), v.place }},
	{"outcome", func(d *decoder, v value, e *expectation) {
		if i := d.oneOf(v, outcomes); i >= 0 {
			e.outcome = &word{v.place, outcomes[i]}
		}
	}},
	{"crash", func(d *decoder, v value, e *expectation) { e.crash = d.trueOrMatcher(v) }},
}, startFields)

// startFields are what can be expected of a start.
var startFields = []field[expectation]{
	{"refused", func(d *decoder, v value, e *expectation) { e.refused = d.trueOrMatcher(v) }},
	{"log", func(d *decoder, v value, e *expectation) { e.log = d.logLines(v) }},
	{"no_log", func(d *decoder, v value, e *expectation) { e.noLog = d.logLines(v) }},
	{"metrics", func(d *decoder, v value, e *expectation) {
		for _, m := range d.members(v, "a mapping of metric names to numbers") {
			e.metrics = append(e.metrics, keyed[*number]{m.key, d.number(m.value)})
		}
	}},
	{"shared_data", func(d *decoder, v value, e *expectation) { e.sharedData = d.matchers(v, "keys") }},
	{"callouts", func(d *decoder, v value, e *expectation) {
		e.hasCallouts, e.calloutsAt = true, v.place
		for _, item := range d.items(v, "a list of requests of the plugin") {
			e.callouts = append(e.callouts, d.callout(item, calloutFields))
		}
	}},
}

func (d *decoder) expectation(v value, fields []field[expectation]) *expectation {
	e := &expectation{place: v.place}
	object(d, v, fields, e)
	return e
}

// matchers reads a mapping of names to matchers.
func (d *decoder) matchers(v value, what string) []keyed[*matcher] {
	var list []keyed[*matcher]
	for _, m := range d.members(v, "a mapping of "+what+" to what is expected") {
		list = append(list, keyed[*matcher]{m.key, d.matcher(m.value)})
	}
	return list
}

func (d *decoder) headerMatchers(v value) []keyed[*matcher] {
	list := d.matchers(v, "header names")
	for i := range list {
		list[i].key = strings.ToLower(list[i].key)
	}
	return list
}

func expectPseudo(header string) func(d *decoder, v value, e *messageExpectation) {
	return func(d *decoder, v value, e *messageExpectation) {
		e.pseudo = append(e.pseudo, keyed[*matcher]{header, d.matcher(v)})
	}
}

var expectMessageFields = []field[messageExpectation]{
	{"headers", func(d *decoder, v value, e *messageExpectation) { e.headers = d.headerMatchers(v) }},
	{"changes", func(d *decoder, v value, e *messageExpectation) { e.changes, e.changed = d.headerMatchers(v), &v.place }},
	{"body", func(d *decoder, v value, e *messageExpectation) { e.body = d.matcher(v) }},
	{"trailers", func(d *decoder, v value, e *messageExpectation) { e.trailers = d.headerMatchers(v) }},
	{"absent", func(d *decoder, v value, e *messageExpectation) { d.onlyTrue(v, &e.absent) }},
}

var expectRequestFields = slices.Concat([]field[messageExpectation]{
	{"method", expectPseudo(":method")}, {"path", expectPseudo(":path")}, {"authority", expectPseudo(":authority")},
}, expectMessageFields)

var expectResponseFields = slices.Concat([]field[messageExpectation]{{"status", expectPseudo(":status")}}, expectMessageFields)

func (d *decoder) messageExpectation(v value, fields []field[messageExpectation]) *messageExpectation {
	e := &messageExpectation{place: v.place}
	has := object(d, v, fields, e)
	if e.absent && len(has) > 1 {
		d.fail(v.place, "what is absent has nothing else to expect of it")
	}
	return e
}

// actionList is what the gateway does after the parts of one phase, in order.
type actionList struct {
	place
	words []string
}

var (
	actionWords = []string{"continue", "pause", "reply", "reset"}
	phases      = []string{"request_headers", "request_body", "request_trailers", "response_headers", "response_body", "response_trailers"}
)

// actionOf is the word for a flow.
func actionOf(f hostsim.Flow) string { return actionWords[f] }

var actionFields = func() []field[map[string]*actionList] {
	var list []field[map[string]*actionList]
	for _, name := range phases {
		list = append(list, field[map[string]*actionList]{name, func(d *decoder, v value, into *map[string]*actionList) {
			(*into)[name] = d.actionList(v)
		}})
	}
	return list
}()

func (d *decoder) actions(v value) map[string]*actionList {
	m := map[string]*actionList{}
	object(d, v, actionFields, &m)
	return m
}

func (d *decoder) actionList(v value) *actionList {
	l := &actionList{place: v.place}
	f, ok := d.follow(v)
	if !ok {
		return l
	}
	list := []value{v}
	if f.node.Kind == yaml.SequenceNode {
		list = d.items(v, "a list")
	}
	for _, item := range list {
		if i := d.oneOf(item, actionWords); i >= 0 {
			l.words = append(l.words, actionWords[i])
		}
	}
	return l
}
