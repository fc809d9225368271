package suite

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v4"
)

// matcher is an expectation about one text. Exactly one of its kinds is set.
type matcher struct {
	place
	exact    *string
	lines    []string // exactly these values, in order
	pattern  *regexp.Regexp
	contains *string
	json     []byte          // canonical
	at       []keyed[[]byte] // canonical, by gjson's paths
	absent   bool
	any      bool // holds for whatever is there
}

var matcherFields = []field[matcher]{
	{"equals", func(d *decoder, v value, m *matcher) { m.exact = new(string); d.text(v, m.exact) }},
	{"contains", func(d *decoder, v value, m *matcher) { m.contains = new(string); d.text(v, m.contains) }},
	{"matches", func(d *decoder, v value, m *matcher) { m.pattern = d.regexp(v) }},
	{"json", func(d *decoder, v value, m *matcher) {
		if text, ok := d.json(v); ok {
			m.json = canonical(text)
		}
	}},
	{"json_at", func(d *decoder, v value, m *matcher) {
		n := len(d.problems)
		for _, member := range d.members(v, "a mapping of values by path") {
			if text, ok := d.json(member.value); member.key == "" {
				d.fail(member.value.place, "an empty path; allowed: a path such as error.code, items.0 or items.#")
			} else if ok {
				m.at = append(m.at, keyed[[]byte]{member.key, canonical(text)})
			}
		}
		if len(m.at) == 0 && !d.failed(n) {
			d.fail(v.place, "no paths; allowed: values by path")
		}
	}},
	{"absent", func(d *decoder, v value, m *matcher) { d.onlyTrue(v, &m.absent) }},
}

func (d *decoder) regexp(v value) *regexp.Regexp {
	s, ok := d.scalar(v, "a regular expression")
	if !ok {
		return nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		d.fail(v.place, "%s; allowed: RE2 syntax", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return nil
	}
	return re
}

// matcher reads text, which must be equal, a list of texts, or a mapping with one kind of comparison.
func (d *decoder) matcher(v value) *matcher {
	m := &matcher{place: v.place}
	n := len(d.problems)
	followed, ok := d.follow(v)
	switch {
	case !ok:
	case followed.node.Kind == yaml.SequenceNode:
		m.lines = []string{}
		for _, item := range d.items(v, "a list") {
			var s string
			d.text(item, &s)
			m.lines = append(m.lines, s)
		}
	case followed.node.Kind == yaml.MappingNode:
		if has := object(d, v, matcherFields, m); len(has) != 1 && !d.failed(n) {
			d.fail(v.place, "%d comparisons; allowed: one of %s", len(has), strings.Join(keys(matcherFields), ", "))
		}
	default:
		if s, ok := d.scalar(v, "text, a list of texts, or a comparison"); ok {
			m.exact = &s
		}
	}
	if d.failed(n) {
		return &matcher{place: v.place, any: true}
	}
	return m
}

// trueOrMatcher reads true, which holds for anything that is there, or a matcher.
func (d *decoder) trueOrMatcher(v value) *matcher {
	if f, ok := d.follow(v); ok && f.node.Kind == yaml.ScalarNode && f.node.ShortTag() == "!!bool" {
		m := &matcher{place: v.place}
		d.onlyTrue(v, &m.any)
		return m
	}
	return d.matcher(v)
}

// holds compares with the values that are there, several of one header among them.
func (m *matcher) holds(values []string) bool {
	joined := strings.Join(values, ", ")
	switch {
	case m.absent:
		return len(values) == 0
	case m.lines != nil:
		return slices.Equal(m.lines, values)
	case len(values) == 0:
		return false
	case m.any:
		return true
	case m.exact != nil:
		return joined == *m.exact
	case m.pattern != nil:
		return m.pattern.MatchString(joined)
	case m.contains != nil:
		return strings.Contains(joined, *m.contains)
	case m.at != nil:
		return string(m.picked(joined)) == string(m.wanted())
	}
	return string(canonical([]byte(joined))) == string(m.json)
}

// String describes what is expected, as a diff's left side.
func (m *matcher) String() string {
	switch {
	case m.absent:
		return "(absent)"
	case m.lines != nil:
		return strings.Join(m.lines, "\n")
	case m.exact != nil:
		return *m.exact
	case m.pattern != nil:
		return "(matches " + m.pattern.String() + ")"
	case m.contains != nil:
		return "(contains " + strconv.Quote(*m.contains) + ")"
	case m.json != nil:
		return indented(m.json)
	case m.at != nil:
		return indented(m.wanted())
	}
	return "(anything)"
}

// wanted is an object of the paths with what is expected at each.
func (m *matcher) wanted() []byte {
	object := []byte("{")
	for i, at := range m.at {
		object = appendMember(object, i, at.key, at.what)
	}
	return append(object, '}')
}

// picked is the same of what a text has at those paths, without those that lead nowhere; nil if it is no JSON.
func (m *matcher) picked(text string) []byte {
	if !gjson.Valid(text) {
		return nil
	}
	object, n := []byte("{"), 0
	for _, at := range m.at {
		found := gjson.Get(text, at.key)
		raw := found.Raw
		if raw == "" { // a number that gjson has counted
			raw = found.String()
		}
		if value := canonical([]byte(raw)); value != nil {
			object = appendMember(object, n, at.key, value)
			n++
		}
	}
	return append(object, '}')
}

func appendMember(object []byte, i int, key string, value []byte) []byte {
	if i > 0 {
		object = append(object, ',')
	}
	return append(append(appendString(object, key), ':'), value...)
}

// seen shows what is there in the form in which String shows what is expected.
func (m *matcher) seen(values []string) string {
	switch {
	case len(values) == 0:
		return "(absent)"
	case m.lines != nil:
		return strings.Join(values, "\n")
	case m.json != nil:
		if text := canonical([]byte(strings.Join(values, ", "))); text != nil {
			return indented(text)
		}
	case m.at != nil:
		if object := m.picked(strings.Join(values, ", ")); object != nil {
			return indented(object)
		}
	}
	return strings.Join(values, ", ")
}

// canonical is JSON with sorted keys and one way to write numbers, or nil for what is no JSON.
func canonical(text []byte) []byte {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return out
}

func indented(text []byte) string {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return string(text)
	}
	out, _ := json.MarshalIndent(v, "", "  ")
	return string(out)
}

// number is an expectation about a metric.
type number struct {
	place
	exact, least, most *int64
	absent             bool
}

var numberFields = []field[number]{
	{"at_least", func(d *decoder, v value, n *number) { n.least = d.whole(v) }},
	{"at_most", func(d *decoder, v value, n *number) { n.most = d.whole(v) }},
	{"absent", func(d *decoder, v value, n *number) { d.onlyTrue(v, &n.absent) }},
}

func (d *decoder) whole(v value) *int64 {
	n := new(int64)
	d.integer(v, math.MinInt64, math.MaxInt64, n)
	return n
}

func (d *decoder) number(v value) *number {
	n := &number{place: v.place}
	f, ok := d.follow(v)
	if ok && f.node.Kind == yaml.MappingNode {
		before := len(d.problems)
		if has := object(d, v, numberFields, n); !d.failed(before) && (len(has) == 0 || n.absent && len(has) > 1) {
			d.fail(v.place, "not one comparison; allowed: a number, at_least, at_most or both, or absent alone")
		}
	} else if ok {
		n.exact = d.whole(v)
	}
	return n
}

func (n *number) holds(v int64, there bool) bool {
	switch {
	case n.absent || !there:
		return n.absent && !there
	case n.exact != nil:
		return v == *n.exact
	}
	return (n.least == nil || v >= *n.least) && (n.most == nil || v <= *n.most)
}

func (n *number) String() string {
	switch {
	case n.absent:
		return "(absent)"
	case n.exact != nil:
		return strconv.FormatInt(*n.exact, 10)
	}
	var parts []string
	if n.least != nil {
		parts = append(parts, fmt.Sprintf("at least %d", *n.least))
	}
	if n.most != nil {
		parts = append(parts, fmt.Sprintf("at most %d", *n.most))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
