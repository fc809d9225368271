package suite

import (
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// callout is an expectation about a request that the plugin itself makes.
type callout struct {
	place
	cluster  *matcher
	worker   *int
	pseudo   []keyed[*matcher]
	headers  []keyed[*matcher]
	body     *matcher
	trailers []keyed[*matcher]
}

func calloutPseudo(header string) func(d *decoder, v value, c *callout) {
	return func(d *decoder, v value, c *callout) {
		c.pseudo = append(c.pseudo, keyed[*matcher]{header, d.matcher(v)})
	}
}

// whenFields are what an answer can depend on.
var whenFields = []field[callout]{
	{"method", calloutPseudo(":method")}, {"path", calloutPseudo(":path")}, {"authority", calloutPseudo(":authority")},
	{"headers", func(d *decoder, v value, c *callout) { c.headers = d.headerMatchers(v) }},
	{"body", func(d *decoder, v value, c *callout) { c.body = d.matcher(v) }},
	{"trailers", func(d *decoder, v value, c *callout) { c.trailers = d.headerMatchers(v) }},
	{"worker", func(d *decoder, v value, c *callout) { c.worker = d.worker(v) }},
}

var calloutFields = append(slices.Clone(whenFields),
	field[callout]{"cluster", func(d *decoder, v value, c *callout) { c.cluster = d.matcher(v) }},
)

func (d *decoder) callout(v value, fields []field[callout]) *callout {
	c := &callout{place: v.place}
	object(d, v, fields, c)
	return c
}

// fits reports whether a request is as described.
func (c *callout) fits(m *madeCall) bool {
	if c.cluster != nil && !c.cluster.holds([]string{m.cluster}) || c.worker != nil && *c.worker != m.worker {
		return false
	}
	for _, list := range [][]keyed[*matcher]{c.pseudo, c.headers} {
		for _, h := range list {
			if !h.what.holds(m.headers.Values(h.key)) {
				return false
			}
		}
	}
	for _, h := range c.trailers {
		if !h.what.holds(m.trailers.Values(h.key)) {
			return false
		}
	}
	return c.body == nil || c.body.holds(bodyValues(m.body))
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
		s += "\n  from " + hostsim.ThreadName(*c.worker)
	}
	return s
}
