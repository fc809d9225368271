package suite

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// Suite is a file of cases, parsed and checked. It is immutable.
type Suite struct {
	file   string
	shared bool
	base   *settings
	cases  []*testCase
}

// testCase is one case.
type testCase struct {
	place
	name  string
	own   *settings // the suite's settings with the case's on top
	start *expectation
	steps []*step
	// ownFaults is true where the faults at the start are the case's, not the suite's.
	ownFaults bool
}

// step is one thing that a case does, and what must come of it.
type step struct {
	place
	stream            string // "" for an exchange of its own
	worker            *int
	request, response *message
	end               *hostsim.EndReason
	advance           *time.Duration
	config            []byte
	reconfigure       bool
	drain             bool
	faults            []fault // nil leaves those in force
	expect            *expectation
}

// MaxSize is the size in bytes above which Parse refuses a text.
const MaxSize = 8 << 20

// Load reads the suite at path. The error is an *Invalid, or that of reading the file.
func Load(path string) (*Suite, error) {
	text, err := ReadFile(path, MaxSize)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// callTimeout is the call_timeout of a suite that names none: a plugin that hangs fails its case.
const callTimeout = time.Minute

// Parse reads a suite. file is its name in messages, and files that it names are looked for beside it. The error is an
// *Invalid with every mistake.
func Parse(file string, text []byte) (*Suite, error) {
	d := &decoder{file: file}
	s := &Suite{file: file, base: &settings{config: hostsim.Config{CallTimeout: callTimeout}}}
	if root := d.document(text); root != nil {
		d.suite(at("", root), s)
	}
	if len(d.problems) > 0 {
		inOrder(d.problems)
		return nil, &Invalid{d.problems}
	}
	return s, nil
}

// File is the name under which the suite was read.
func (s *Suite) File() string { return s.file }

// Cases are the names of the cases, in the order of the text.
func (s *Suite) Cases() []string {
	var names []string
	for _, c := range s.cases {
		names = append(names, c.name)
	}
	return names
}

// document parses the one document of a text.
func (d *decoder) document(text []byte) *yaml.Node {
	if len(text) > MaxSize {
		d.fail(place{}, "%d bytes; allowed: at most %d", len(text), MaxSize)
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		d.fail(place{}, "%v", err)
		return nil
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); err != nil && !errors.Is(err, io.EOF) {
		d.syntax(err)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		d.fail(place{line: 1, column: 1}, "empty; needed: cases")
		return nil
	}
	if err := loader.Load(&more); err == nil {
		d.fail(place{line: more.Line, column: more.Column}, "a second document; allowed: one a file")
		return nil
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err)
		return nil
	}
	return doc.Content[0]
}

// syntax reports what is no YAML.
func (d *decoder) syntax(err error) {
	var p place
	text := err.Error()
	if e := (*yaml.LoadError)(nil); errors.As(err, &e) {
		p = place{line: e.Mark.Line, column: e.Mark.Column}
		text = e.Message
		if e.ContextMsg != "" && e.ContextMark.Line > 0 {
			text += fmt.Sprintf(" (%s that begins at %d:%d)", e.ContextMsg, e.ContextMark.Line, e.ContextMark.Column)
		}
	}
	d.fail(p, "not YAML: %s", text)
}

// suiteFields leaves the cases' own values for later, for they build on the settings.
var suiteFields = []field[suiteParts]{
	{"plugin", func(d *decoder, v value, s *suiteParts) { s.plugin = &v }},
	{"gateway", func(d *decoder, v value, s *suiteParts) { s.gateway = &v }},
	{"shared", func(d *decoder, v value, s *suiteParts) { d.boolean(v, &s.shared) }},
	{"start", func(d *decoder, v value, s *suiteParts) { s.start = d.expectation(v, startFields) }},
	{"cases", func(d *decoder, v value, s *suiteParts) { s.cases = d.items(v, "a list of cases") }},
}

type suiteParts struct {
	plugin, gateway *value
	shared          bool
	start           *expectation
	cases           []value
}

func (d *decoder) suite(v value, s *Suite) {
	var parts suiteParts
	n := len(d.problems)
	has := object(d, v, suiteFields, &parts)
	d.settings(parts.plugin, parts.gateway, s.base)
	s.shared = parts.shared
	if len(parts.cases) == 0 && !d.failed(n) {
		p := v.place
		if at, ok := has["cases"]; ok {
			p = at
		}
		d.fail(p, "no cases; needed: at least one")
	}
	names := map[string]int{}
	for _, item := range parts.cases {
		c := d.testCase(item, s, parts.start)
		if line, twice := names[c.name]; twice && c.name != "" {
			d.fail(item.place, "the name %q is taken by the case on line %d", short(c.name), line)
		}
		names[c.name] = item.line
		s.cases = append(s.cases, c)
	}
}

func (d *decoder) settings(plugin, gateway *value, s *settings) {
	if plugin != nil {
		d.plugin(*plugin, s)
	}
	if gateway != nil {
		object(d, *gateway, gatewayFields, s)
	}
}

// caseParts are the values of a case. A case of one step has the step's keys beside its own.
type caseParts struct {
	name            string
	plugin, gateway *value
	start           *expectation
	steps           []value
	hasSteps        bool
	only            step
}

var caseFields = append([]field[caseParts]{
	{"name", func(d *decoder, v value, c *caseParts) { d.name(v, &c.name) }},
	{"plugin", func(d *decoder, v value, c *caseParts) { c.plugin = &v }},
	{"gateway", func(d *decoder, v value, c *caseParts) { c.gateway = &v }},
	{"start", func(d *decoder, v value, c *caseParts) { c.start = d.expectation(v, startFields) }},
	{"steps", func(d *decoder, v value, c *caseParts) { c.steps, c.hasSteps = d.items(v, "a list of steps"), true }},
}, onlyStepFields()...)

func onlyStepFields() []field[caseParts] {
	var list []field[caseParts]
	for _, f := range stepFields {
		if f.key != "stream" {
			list = append(list, field[caseParts]{f.key, func(d *decoder, v value, c *caseParts) { f.read(d, v, &c.only) }})
		}
	}
	return list
}

var stepFields = []field[step]{
	{"stream", func(d *decoder, v value, s *step) { d.name(v, &s.stream) }},
	{"worker", func(d *decoder, v value, s *step) { s.worker = new(int); d.count(v, 0, 255, s.worker) }},
	{"request", func(d *decoder, v value, s *step) { s.request = d.message(v, false) }},
	{"response", func(d *decoder, v value, s *step) { s.response = d.message(v, true) }},
	{"end", func(d *decoder, v value, s *step) {
		if i := d.oneOf(v, endReasons); i >= 0 {
			reason := hostsim.EndReason(i)
			s.end = &reason
		}
	}},
	{"advance", func(d *decoder, v value, s *step) { s.advance = new(time.Duration); d.duration(v, s.advance) }},
	{"reconfigure", func(d *decoder, v value, s *step) { s.reconfigure = true; d.configuration(v, &s.config) }},
	{"drain", func(d *decoder, v value, s *step) { d.onlyTrue(v, &s.drain) }},
	{"faults", func(d *decoder, v value, s *step) { s.faults = d.faults(v) }},
	{"expect", func(d *decoder, v value, s *step) { s.expect = d.expectation(v, expectFields) }},
}
