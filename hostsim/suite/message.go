package suite

import (
	"bytes"
	"encoding/base64"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// message is what a case delivers to the plugin in one direction: a whole message, or a piece of one.
type message struct {
	place
	response bool
	pseudo   map[string]string // :method and the like, as given
	headers  hostsim.Headers
	body     body
	trailers hostsim.Headers
	properties
	more bool // the end is not in this piece
}

// properties are answers to proxy_get_property, by path.
type properties map[string][]byte

var requestFields = []field[message]{
	{"method", pseudoHeader(":method")},
	{"path", pseudoHeader(":path")},
	{"authority", pseudoHeader(":authority")},
	{"scheme", pseudoHeader(":scheme")},
	{"headers", func(d *decoder, v value, m *message) { m.headers = d.headers(v) }},
	{"body", func(d *decoder, v value, m *message) { m.body = d.body(v) }},
	{"trailers", func(d *decoder, v value, m *message) { m.trailers = d.headers(v) }},
	{"more", func(d *decoder, v value, m *message) { d.onlyTrue(v, &m.more) }},
	{"properties", func(d *decoder, v value, m *message) { d.properties(v, &m.properties) }},
}

var responseFields = []field[message]{
	{"status", func(d *decoder, v value, m *message) {
		var n int64
		if d.integer(v, 100, 599, &n); n != 0 {
			m.setPseudo(":status", strconv.FormatInt(n, 10))
		}
	}},
	{"headers", func(d *decoder, v value, m *message) { m.headers = d.headers(v) }},
	{"body", func(d *decoder, v value, m *message) { m.body = d.body(v) }},
	{"trailers", func(d *decoder, v value, m *message) { m.trailers = d.headers(v) }},
	{"more", func(d *decoder, v value, m *message) { d.onlyTrue(v, &m.more) }},
	{"properties", func(d *decoder, v value, m *message) { d.properties(v, &m.properties) }},
}

func pseudoHeader(name string) func(d *decoder, v value, m *message) {
	return func(d *decoder, v value, m *message) {
		if s, ok := d.scalar(v, "text"); ok {
			m.setPseudo(name, s)
		}
	}
}

func (m *message) setPseudo(name, value string) {
	if m.pseudo == nil {
		m.pseudo = map[string]string{}
	}
	m.pseudo[name] = value
}

func (d *decoder) message(v value, response bool) *message {
	m := &message{place: v.place, response: response}
	fields := requestFields
	if response {
		fields = responseFields
	}
	object(d, v, fields, m)
	if m.more && m.trailers != nil {
		d.fail(v.place, "trailers end a message, so more cannot follow")
	}
	return m
}

// all are the headers of a message that begins with this piece.
func (m *message) all() hostsim.Headers {
	h := hostsim.Headers{}
	if m.response {
		h.Add(":status", m.orElse(":status", "200"))
	} else {
		method := "GET"
		if m.body.given() || m.more {
			method = "POST"
		}
		h.Add(":method", m.orElse(":method", method))
		h.Add(":scheme", m.orElse(":scheme", "http"))
		h.Add(":authority", m.orElse(":authority", "example.com"))
		h.Add(":path", m.orElse(":path", "/"))
	}
	return append(h, m.headers...)
}

// begins reports whether this piece has what only the first one of a message can have.
func (m *message) begins() bool { return len(m.pseudo) > 0 || m.headers != nil }

func (m *message) orElse(name, fallback string) string {
	if s, ok := m.pseudo[name]; ok {
		return s
	}
	return fallback
}

// headers reads a mapping of names to a value or a list of values.
func (d *decoder) headers(v value) hostsim.Headers {
	h := hostsim.Headers{}
	for _, m := range d.members(v, "a mapping of header names to values") {
		if !isHeaderName(m.key) {
			d.fail(m.at, "%s is no header name", strconv.Quote(short(m.key)))
			continue
		}
		for _, s := range d.textOrList(m.value) {
			h.Add(m.key, s)
		}
	}
	return h
}

// textOrList reads one text or a list of texts.
func (d *decoder) textOrList(v value) []string {
	f, ok := d.follow(v)
	if !ok {
		return nil
	}
	if f.node.Kind != yaml.SequenceNode {
		s, ok := d.scalar(v, "text, or a list of texts,")
		if !ok {
			return nil
		}
		return []string{s}
	}
	list := []string{}
	for _, item := range d.items(v, "a list") {
		var s string
		d.text(item, &s)
		list = append(list, s)
	}
	return list
}

// isHeaderName allows a pseudo header's colon: a suite may send what a gateway would refuse.
func isHeaderName(s string) bool {
	for _, r := range s {
		if r <= ' ' || r >= 0x7f {
			return false
		}
	}
	return s != ""
}

// body is a body as the suite gives it: by its chunks, or by a plan to make them.
type body struct {
	list [][]byte
	plan *bodyPlan
}

func (b body) given() bool { return len(b.list) > 0 || b.plan != nil }

// chunks are the parts in which it arrives.
func (b body) chunks() [][]byte {
	if b.plan == nil {
		return b.list
	}
	data := bytes.Repeat(b.plan.data, b.plan.repeat)
	if b.plan.chunk == 0 || len(data) == 0 {
		return [][]byte{data}
	}
	return slices.Collect(slices.Chunk(data, b.plan.chunk))
}

// bodyPlan is a body by its parts.
type bodyPlan struct {
	data   []byte
	repeat int
	chunk  int
}

var bodyFields = []field[bodyPlan]{
	{"text", func(d *decoder, v value, b *bodyPlan) {
		var s string
		d.text(v, &s)
		b.data = []byte(s)
	}},
	{"base64", func(d *decoder, v value, b *bodyPlan) {
		s, ok := d.scalar(v, "base64")
		data, err := base64.StdEncoding.DecodeString(s)
		if ok && err != nil {
			d.fail(v.place, "not base64: %v", err)
		}
		b.data = data
	}},
	{"file", func(d *decoder, v value, b *bodyPlan) { d.readFile(v, &b.data) }},
	{"repeat", func(d *decoder, v value, b *bodyPlan) { d.count(v, 1, 1<<26, &b.repeat) }},
	{"chunk", func(d *decoder, v value, b *bodyPlan) { d.count(v, 1, 1<<26, &b.chunk) }},
}

const maxBody = 64 << 20

// body reads text, which arrives in one chunk, a list of chunks, or a mapping that says how to make them.
func (d *decoder) body(v value) body {
	f, ok := d.follow(v)
	if !ok {
		return body{}
	}
	if f.node.Kind != yaml.MappingNode {
		var chunks [][]byte
		for _, s := range d.textOrList(v) {
			chunks = append(chunks, []byte(s))
		}
		if f.node.Kind == yaml.ScalarNode && len(chunks) == 1 && len(chunks[0]) == 0 {
			return body{}
		}
		return body{list: chunks}
	}
	n := len(d.problems)
	b := &bodyPlan{repeat: 1}
	has := object(d, v, bodyFields, b)
	sources := 0
	for _, key := range []string{"text", "base64", "file"} {
		if _, ok := has[key]; ok {
			sources++
		}
	}
	switch {
	case d.failed(n):
	case sources != 1:
		d.fail(v.place, "%d sources; allowed: one of text, base64, file", sources)
	case len(b.data)*b.repeat > maxBody:
		d.fail(v.place, "%d bytes; allowed: at most %d", len(b.data)*b.repeat, maxBody)
	}
	return body{plan: b}
}

// properties reads answers to proxy_get_property: text as it is, whole numbers in eight bytes, true and false in one, as
// Envoy encodes them.
func (d *decoder) properties(v value, into *properties) {
	out := properties{}
	for path, old := range *into {
		out[path] = old
	}
	for _, m := range d.members(v, "a mapping of property paths to values") {
		f, ok := d.follow(m.value)
		if !ok {
			continue
		}
		switch tag := f.node.ShortTag(); {
		case f.node.Kind == yaml.ScalarNode && tag == "!!int":
			var n int64
			d.integer(m.value, math.MinInt64, math.MaxInt64, &n)
			out[m.key] = hostsim.PropertyInt(n)
		case f.node.Kind == yaml.ScalarNode && tag == "!!bool":
			var b bool
			d.boolean(m.value, &b)
			out[m.key] = []byte{0}
			if b {
				out[m.key][0] = 1
			}
		default:
			if s, ok := d.scalar(m.value, "text, a whole number, true or false"); ok {
				out[m.key] = []byte(s)
			}
		}
	}
	*into = out
}
